-- pop_end: makes the answer.
-- Needs   pop_begin, pop_gate, pop_retries; waiting: messages that are left
if gap > 0 then
  if got < n then redis.pcall(save_rate(got)) end
  tat = tat + got * gap
end
out[3] = waiting
out[4] = first and call('ZRANGE', R, 0, 0, 'WITHSCORES')[2] or ''
-- Only messages that were passed over are due: the caller must not pop again at once.
if passed > 0 and got == 0 then out[4] = string.format('%.6f', now + 0.1) end
out[5] = dropped
out[6] = got == n and limited() or ''
return out

-- pop_end: the answer.
-- Needs   pop_begin, pop_gate, pop_retries; waiting: messages that are left
if gap > 0 then
  if got < n then redis.pcall(save_rate(got)) end
  tat = tat + got * gap
end
out[3] = waiting
out[4] = first and call('ZRANGE', R, 0, 0, 'WITHSCORES')[2] or ''
out[5] = dropped
out[6] = got == n and limited() or ''
return out

-- arm_end: makes the answer.
-- Needs   call now, pause; R B: QRETRY QBACKUP (nil: no fleet); waiting; delayed: a
--         time or nil
local function seconds(at)
  return at and string.format('%.6f', math.min(math.max(at - now, 0), 1e9)) or ''
end

local due = call('ZRANGE', R, 0, 0, 'WITHSCORES')[2]
local full = B and call('ZCARD', B) >= tonumber(ARGV[1]) and 1 or 0
local why, ttl = pause()
return {string.format('%.6f', now), waiting, seconds(tonumber(due)), seconds(delayed),
  why and 1 or 0, why or '', ttl or -1, full}

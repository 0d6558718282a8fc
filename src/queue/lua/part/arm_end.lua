-- arm_end: the answer.
-- Needs   call now; R P B: QRETRY QPAUSED QBACKUP (nil: no fleet); waiting; delayed: a
--         time or nil
local function seconds(at)
  return at and string.format('%.6f', math.min(math.max(at - now, 0), 1e9)) or ''
end

local due = call('ZRANGE', R, 0, 0, 'WITHSCORES')[2]
local full = B and call('ZCARD', B) >= tonumber(ARGV[1]) and 1 or 0
local paused, why, ttl = call('EXISTS', P), '', -1
if paused == 1 then
  why = redis.pcall('GET', P)
  why = type(why) == 'string' and string.sub(why, 1, 1000) or ''
  ttl = call('PTTL', P)
end
return {string.format('%.6f', now), waiting, seconds(tonumber(due)), seconds(delayed),
  paused, why, ttl, full}

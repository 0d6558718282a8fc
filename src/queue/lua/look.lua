-- look: may messages be taken, and do any wait?  Sent after CLIENT CACHING YES, it
-- also makes Redis say when one of its keys changes.
--
-- KEYS    QPAUSED, and Q where messages wait in a list
-- ARGV    none
-- Returns {waiting, paused, why, ttl}
--         waiting: 0 without Q; paused: 1 or 0; ttl: of the pause in ms, -1 if it
--         has none.
-- Effect  None: reads only.
-- Again   Reads again.
local P, Q = KEYS[1], KEYS[2]
local call = redis.call

local waiting = Q and call('LLEN', Q) or 0
local paused, why, ttl = call('EXISTS', P), '', -1
if paused == 1 then
  why = redis.pcall('GET', P)
  why = type(why) == 'string' and string.sub(why, 1, 1000) or ''
  ttl = call('PTTL', P)
end
return {waiting, paused, why, ttl}

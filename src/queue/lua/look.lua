-- look: tells whether the queue is paused, and how many messages wait.  It is sent
-- after CLIENT CACHING YES, so that Redis reports the next change of one of its keys.
--
-- KEYS    QPAUSED, and Q if messages wait in a list
-- ARGV    none
-- Returns {waiting, paused, why, ttl}
--         waiting: 0 without Q; paused: 1 or 0; ttl: of the pause in ms, -1 if it
--         has none.
-- Effect  None: reads only.
-- Again   Reads again.
local P, Q = KEYS[1], KEYS[2]
local call = redis.call
--@ include pause
local waiting, why, ttl = Q and call('LLEN', Q) or 0, pause()
return {waiting, why and 1 or 0, why or '', ttl or -1}

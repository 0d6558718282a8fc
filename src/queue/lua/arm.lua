-- arm: tells whether there is work, and if not, when there will be.  It is sent after
-- CLIENT CACHING YES, so that Redis reports the next change of one of its keys.
--
-- KEYS    QPAUSED; Q if messages wait there; of kinds with leases also QRETRY QDELAYED, and
--         QBACKUP if there is a limit of the fleet
-- ARGV    fleet      how many may be in flight at once, all daemons; "0": any
--         group      of a stream
-- Returns {now, waiting, due, delayed, paused, why, ttl, full}
--         waiting: of a stream 1 or 0; 1 also if the group is missing
--         due, delayed: seconds until the first in QRETRY, in QDELAYED, or of a
--         zset the first in Q (there only if within 15 s); 0 if due, "" if none; paused: 1 or
--         0; ttl: of the pause in ms, -1 if it has none; full: 1 if the fleet may not begin
--         another message.
-- Effect  None: reads only.
-- Again   Reads again.
--@ sources list zset stream
local P, Q, R, L, B = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local call, group = redis.call, ARGV[2]

local t = call('TIME')
local now = t[1] + t[2] / 1e6
--@ include soonest
--@ include pause

--@ for zset
local waiting, delayed = due_by(Q, now), soonest(Q)
--@ for list stream
-- If QDELAYED is wrong, the tick warns of it; the rest of the answer stays right.
local fine, delayed = pcall(function() return L and soonest(L) end)
if not fine then delayed = nil end
--@ for list
local waiting = Q and call('LLEN', Q) or 0
--@ for stream
--@ include stream_new
local waiting = unread()
--@ end

local function seconds(at)
  return at and string.format('%.6f', math.min(math.max(at - now, 0), 1e9)) or ''
end

local due = R and call('ZRANGE', R, 0, 0, 'WITHSCORES')[2]
local full = B and call('ZCARD', B) >= tonumber(ARGV[1]) and 1 or 0
local why, ttl = pause()
return {string.format('%.6f', now), waiting, seconds(tonumber(due)), seconds(delayed),
  why and 1 or 0, why or '', ttl or -1, full}

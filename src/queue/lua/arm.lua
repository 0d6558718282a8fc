-- arm: tells whether there is work, and if not, when there will be.  It is sent after
-- CLIENT CACHING YES, so that Redis reports the next change of one of its keys.
--
-- KEYS    Q QRETRY QDELAYED QPAUSED, and QBACKUP if there is a limit of the fleet
-- ARGV    fleet      how many may be in flight at once, all daemons; "0": any
-- Returns {now, waiting, due, delayed, paused, why, ttl, full}
--         due, delayed: seconds until the first in QRETRY, in QDELAYED (there
--         only if within 15 s); 0 if due, "" if none; paused: 1 or 0; ttl: of the
--         pause in ms, -1 if it has none; full: 1 if the fleet
--         may not begin another message.
-- Effect  None: reads only.
-- Again   Reads again.
local Q, R, L, P, B = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local call = redis.call

local t = call('TIME')
local now = t[1] + t[2] / 1e6
--@ include soonest
--@ include pause

-- If QDELAYED is wrong, the tick warns of it; the rest of the answer stays right.
local waiting, fine, delayed = call('LLEN', Q), pcall(soonest, L)
if not fine then delayed = nil end
--@ include arm_end

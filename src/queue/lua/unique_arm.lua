-- unique_arm: arm for kind "unique".
--
-- KEYS    Q QRETRY QPAUSED, and QBACKUP if the fleet has a limit; Q: zset, id -> due time
-- ARGV    as arm
-- Returns as arm; waiting: ids that are due; delayed: seconds until the next one is,
--         if within 15 s
-- Effect  None: reads only.
-- Again   Reads again.
local Q, R, P, B = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local call = redis.call

local t = call('TIME')
local now = t[1] + t[2] / 1e6
--@ include soonest
--@ include pause

local waiting, delayed = due_by(Q, now), soonest(Q)
--@ include arm_end

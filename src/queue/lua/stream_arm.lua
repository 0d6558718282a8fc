-- stream_arm: as arm, for a stream.
--
-- KEYS    as arm
-- ARGV    fleet, as arm; then
--         group
-- Returns as arm; waiting: 1 if an entry is new to the group, or the group is
--         missing; else 0
-- Effect  None: reads only.  These reads make Redis track the keys; XREADGROUP alone
--         would not.
-- Again   Reads again.
local Q, R, L, P, B = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local call, group = redis.call, ARGV[2]

local t = call('TIME')
local now = t[1] + t[2] / 1e6
--@ include soonest
--@ include pause
--@ include stream_new

-- If QDELAYED is wrong, the tick warns of it; the rest of the answer stays right.
local waiting, fine, delayed = unread(), pcall(soonest, L)
if not fine then delayed = nil end
--@ include arm_end

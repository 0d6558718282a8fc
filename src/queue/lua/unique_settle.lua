-- unique_settle: settle for kind "unique".
--
-- KEYS    QBACKUP QCONTEXT QRETRY QDELIVERY QDEAD Q
-- ARGV    as settle
-- Returns as settle; due: "0" if an id is due in Q because its run has ended
-- Effect  As settle; an id that was put off while it ran gets its score back before
--         its tag leaves QBACKUP.
-- Again   As settle.
local B, C, R, D, X, Q = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local call, match = redis.call, string.match
local dead_max, host, first, hooks = ARGV[1], ARGV[2], 4, {}
--@ include unique
--@ include unique_leave
--@ include letter
--@ include mark
--@ include seen
--@ include settle_begin
--@ include settle_all

-- unique_hand_over: hand_over for kind "unique".
--
-- KEYS    QBACKUP QCONTEXT QRETRY QDELIVERY QDEAD Q
--         then the lists that are pushed to
-- ARGV    as hand_over
-- Returns as hand_over; due: "0" if an id is due in Q because its run has ended
-- Effect  As hand_over; an id that was put off while it ran gets its score back before
--         its tag leaves QBACKUP.
-- Again   As hand_over.
local B, C, R, D, Q = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[6]
local call, match = redis.call, string.match
local first, targets, hooks = 4, 6, {}
call('ZCARD', Q)
-- Changes nothing, but as the first writing command Redis refuses it at maxmemory.
call('ZADD', R, 'XX', 0, '\0')
--@ include unique
--@ include unique_leave
--@ include seen
--@ include mark
--@ include settle_begin
--@ include pushes
--@ include hand_over_all

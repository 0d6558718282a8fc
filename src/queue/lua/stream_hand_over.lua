-- stream_hand_over: hand_over for a stream.
--
-- KEYS    QBACKUP QCONTEXT QRETRY QDELIVERY QDEAD Q
--         then the lists that are pushed to
-- ARGV    dead_max host over group consumer, as stream_settle; then as hand_over
-- Returns as hand_over; "taken" also if another consumer has claimed the entry
-- Effect  As hand_over; also acknowledges an entry that is done (XACK).
-- Again   As hand_over.
local B, C, R, D, Q = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[6]
local call, match = redis.call, string.match
local first, targets, hooks = 6, 6, {}
local group, consumer = ARGV[4], ARGV[5]
call('XLEN', Q)
-- Changes nothing, but as the first writing command Redis refuses it at maxmemory.
call('ZADD', R, 'XX', 0, '\0')
--@ include stream_entry
--@ include stream_leave
--@ include seen
--@ include mark
--@ include settle_begin
--@ include pushes
--@ include hand_over_all

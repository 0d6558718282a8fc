-- stream_settle: settle for a stream.
--
-- KEYS    as settle, then Q
-- ARGV    dead_max host over, as settle; then
--         group
--         consumer   the caller's name in it
--         results, as settle
-- Returns as settle; "taken" also if another consumer has claimed the entry, and so
--         owns it now
-- Effect  As settle; also acknowledges (XACK) an entry that is done, or that has its new
--         place in QRETRY or QDEAD, unless another consumer has it.
-- Again   As settle.
local B, C, R, D, X, Q = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local call, match = redis.call, string.match
local dead_max, host, first, hooks = ARGV[1], ARGV[2], 6, {}
local group, consumer = ARGV[4], ARGV[5]
call('XLEN', Q)
--@ include stream_entry
--@ include stream_leave
--@ include letter
--@ include mark
--@ include seen
--@ include settle_begin
--@ include settle_all

-- hand_over: acks deliveries, and pushes the messages that they hand over to other
-- queues.  One call settles many deliveries, each independently.
--
-- KEYS    QBACKUP QCONTEXT QRETRY QDELIVERY QDEAD
--         then the lists that are pushed to
-- ARGV    dead_max host    as settle; not used
--         over       ""
--         then for each result
--           TAG TOKEN N, then N times TARGET COUNT MESSAGE ...
--                    TARGET is the number of the list among KEYS, the first one is 1
-- Returns {now, due, answer, ...} as settle; an answer is "ok", "held", "gone", "lost",
--         "held lost" or "taken", as settle's for an ack; or
--         "error TEXT"  neither pushed nor acked
-- Effect  If QDELIVERY holds the token, it pushes the messages, in their order, and acks
--         the delivery, or does neither.  At maxmemory Redis refuses the whole call,
--         before anything has changed.
-- Again   Answers "gone" the second time.  Such a call must not be the daemon's last one
--         (over): the second time would answer "lost" then.
local B, C, R, D = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local call, match = redis.call, string.match
local first, targets, hooks = 4, 5, {}
-- Changes nothing, but as the first writing command Redis refuses it at maxmemory.
call('ZADD', R, 'XX', 0, '\0')
--@ include seen
--@ include mark
--@ include settle_begin
--@ include pushes
--@ include hand_over_all

-- hand_over: acks deliveries, and pushes what they hand over to other queues, many in one
-- call, each for itself.
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
-- Effect  Only where QDELIVERY holds the token: the messages are pushed, in their order,
--         and the delivery is acked, or neither.  At maxmemory the whole call is
--         refused, before anything has changed.
-- Again   The second time it is gone.  No call with these results may be the daemon's last
--         one (over): a second one would be lost then.
local B, C, R, D = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local call, match = redis.call, string.match
local first, targets, hooks = 4, 5, {}
-- Changes nothing, but is refused at maxmemory if it is the first command that writes.
call('ZADD', R, 'XX', 0, '\0')
--@ include seen
--@ include mark
--@ include settle_begin
--@ include pushes
--@ include hand_over_all

-- renew: says that deliveries are still being worked on.
--
-- KEYS    QBACKUP QRETRY QDELIVERY
-- ARGV    fleet      how many may be in hand at once, all daemons; "0": any
--         TAG TOKEN ...  at most 250 pairs
-- Returns {now, answer, ...}: 1 renewed; 2 it had expired, but nobody has taken
--         it: ours again; 0 held by another delivery, or expired while others
--         hold all places of the fleet; -1 unknown: the tag is
--         nowhere; -2 our token, but in neither zset: a foreign consumer
--         requeued or acked it (settle's "stale" clears up after it).
-- Effect  Sets the time in QBACKUP; the token stays.  An expired one is in
--         QBACKUP again before it leaves QRETRY.
-- Again   Sets the time again.
local B, R, D = KEYS[1], KEYS[2], KEYS[3]
local call, first, hooks = redis.call, 2, {}
--@ include renew_all

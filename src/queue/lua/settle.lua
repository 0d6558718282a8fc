-- settle: what became of deliveries, many in one call, each for itself.
--
-- KEYS    QBACKUP QCONTEXT QRETRY QDELIVERY QDEAD
-- ARGV    dead_max   letters to keep, "0": all
--         host       for the letters
--         then for each result one of
--           "ack" TAG TOKEN
--           "retry" TAG TOKEN DELAY            a failed attempt; due in DELAY seconds
--           "return" TAG TOKEN                 as it was; due now
--           "dead" TAG TOKEN FAILED REASON STATUS ERROR    FAILED "1": counts as an attempt
--           "stale" TAG TOKEN                  removes what "taken" would, else nothing
-- Returns {now, due, answer, ...}; due: first time in QRETRY, "" if empty; an answer is
--         "ok"
--         "held"     another delivery has it, or it waits for one
--         "unknown"  the tag is nowhere, or has no payload
--         "taken"    our token, but in neither zset: a foreign consumer
--                    requeued or acked it; what is left of it is removed
--         "deferred TEXT"  the letter cannot be written (why); due in 60 s
--         "again"    not done: enough payload was copied in this call
--         "error TEXT"     not known to be done; send it again
-- Effect  Only where QDELIVERY holds the token.  A retry is in QRETRY before it
--         leaves QBACKUP, a dead letter in QDEAD before it is removed.
-- Again   The second time an ack is unknown, a retry or return held, a letter
--         unknown.  The token goes last, so what failed in the middle is
--         done again, to the same end.
local B, C, R, D, X = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local call, match = redis.call, string.match
local dead_max, host, first, hooks = ARGV[1], ARGV[2], 3, {}
--@ include letter
--@ include settle_all

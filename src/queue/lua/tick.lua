-- tick: puts expired deliveries and due delayed messages back, removes leftovers, and
-- adds counters.  The step is bounded; "more" asks for another one.
--
-- KEYS    Q QBACKUP QCONTEXT QRETRY QDELIVERY QDELAYED QSTATS
-- ARGV    lease      seconds
--         foreign    seconds after which a foreign consumer's delivery expires
--         requeue    "1": put expired deliveries back; "0": do only the rest
--         sent       Redis seconds when the caller sent this: a tick that waited
--                    in a stalled server judges leases by that time
--         batch      entries looked at, <= 250
--         maxbytes   payload moved; one message always is
--         rank       where to go on in QBACKUP; 0, or what the last step returned
--         cursor     of the sweep of QDELIVERY; 0, or what the last tick returned; "-": no sweep
--         then       COUNTER DELTA ... for QSTATS
-- Returns {now, more, requeued, promoted, dropped, waiting, expires, due,
--         delayed, rank, cursor, warning, scan, taken, others}
--         expires: no delivery in QBACKUP expires before this time, due: first time
--         in QRETRY, delayed: first in QDELAYED if within 15 s; "" if none; scan: "";
--         taken: how many the fleet has taken from Q, -1 if that is not known;
--         others: 1 if the tick saw a consumer that takes messages without counting them
-- Effect  Expired and rqd's (has a field in QDELIVERY): to QRETRY, due now, token
--         and counts kept.  Expired and foreign: payload to Q.  Without
--         payload: dropped.  A time more than a day ahead: set to now.  Due in
--         QDELAYED (from 1e11 on: milliseconds): to Q.  Fields of QDELIVERY whose
--         tag is nowhere and old: removed.  The destination is always written first.
-- Again   Finds less to do.  Counters may be added twice.
local Q, B, C, R, D, L, S = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
--@ include mark
--@ include taken
--@ include tick_begin
call('LLEN', Q)
hooks.foreign = function(tag)
  call('LPUSH', Q, call('HGET', C, tag))
  call('HDEL', C, tag)
  hooks.others = 1
end
--@ include tick_leases

local function add(m) call('LPUSH', Q, m) end
--@ include soonest
--@ include promote
local waiting, counters = call('LLEN', Q), 9
--@ include tick_list
--@ include tick_end

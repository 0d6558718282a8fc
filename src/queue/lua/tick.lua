-- tick: puts expired deliveries and due delayed messages back, clears up, and
-- adds counters.  A bounded step; "more" asks for another one.
--
-- KEYS    Q QBACKUP QCONTEXT QRETRY QDELIVERY QDELAYED QSTATS
-- ARGV    lease      seconds
--         foreign    seconds that a foreign consumer's delivery is left alone
--         requeue    "1": expired ones are put back; "0": only the rest
--         sent       Redis seconds when the caller sent this: a tick that waited
--                    in a stalled server judges leases by it
--         batch      entries looked at, <= 250
--         maxbytes   payload moved; one message always is
--         rank       where in QBACKUP to go on; 0, or what the last step returned
--         cursor     of the sweep of QDELIVERY; 0, or what the last tick returned; "-": no sweep
--         then       COUNTER DELTA ... for QSTATS
-- Returns {now, more, requeued, promoted, dropped, waiting, expires, due,
--         delayed, rank, cursor, warning, scan, taken, others}
--         expires: no delivery in QBACKUP expires before, due: first time in
--         QRETRY, delayed: first in QDELAYED if within 15 s; "" if none; scan: "";
--         taken: how many the fleet has taken from Q, -1 where that is not known;
--         others: 1 where somebody was seen who takes messages and does not count them
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

-- unique_tick: tick for kind "unique".
--
-- KEYS    Q QBACKUP QCONTEXT QRETRY QDELIVERY QSTATS; Q: zset, id -> due time
-- ARGV    as tick
-- Returns as tick; waiting: ids that are due; promoted: 0; delayed: ""; taken: -1
-- Effect  Expired deliveries, whoever has written them: to QRETRY, due now, token and
--         counts kept.  Without payload: dropped.  A time more than a day ahead:
--         set to now.  Fields of QDELIVERY whose tag is nowhere and old: removed.
--         Ids that were put off and do not run: they get their scores back.
-- Again   Finds less to do.  Counters may be added twice.
local Q, B, C, R, D, S = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
--@ include tick_begin
--@ include soonest
--@ include unique
due_by(Q, now)
--@ include tick_leases

-- Ids that were put off, and whose deliveries somebody has removed from QBACKUP.  Looks
-- at 50 ids, beginning at a random one.
local function strays()
  local low, high = string.format('%.0f', AWAY), string.format('(%.0f', 2 * AWAY)
  local count, size, ids = call('ZCOUNT', Q, low, high), 0, {}
  local first, from = call('ZCOUNT', Q, '-inf', '(' .. low), math.floor(now * 1e6)
  for i = 0, math.min(50, count) - 1 do
    -- Read by rank, since LIMIT would count up to there.
    local rank = first + (from + i) % count
    local id = call('ZRANGE', Q, rank, rank)[1]
    if size > room then break end
    size = size + #id
    if not call('ZSCORE', B, tag_of(id)) then ids[#ids + 1] = id end
  end
  for _, id in ipairs(ids) do put_back(id) end
end

attempt(strays)
local waiting, delayed, counters = due_by(Q, now), '', 9
--@ include tick_end

-- pop_gate: ends the pop if no message may be delivered, or if there is none; lowers n
-- to what the limits of the fleet allow.  It is the last part that only reads.
-- Needs   pop_begin, pause; waiting: messages that could be delivered, beside QRETRY's
-- Gives   limit: "", "fleet" or "rate": the one that has lowered n; tat
--
-- A rate is kept as the time of the next message if all came evenly, gap seconds apart
-- (tat, as in GCRA).  A message may come up to slack seconds before its time.  A tat
-- that is farther ahead than any message could have set it comes from another rate, or
-- another clock: one message may come, and sets it anew.
local why, ttl = pause()
if why then return {'paused', stamp, waiting, first or '', 0, '', -1, why, ttl} end
if late or deadline > 0 and now > deadline then
  return {'late', stamp, waiting, first or '', 0, '', -1}
end
if waiting == 0 and not (first and tonumber(first) <= now) then
  return {'ok', stamp, 0, first or '', 0, '', -1}
end

local fleet, gap, slack = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local limit, tat = '', now
if fleet > 0 then
  local free = math.max(fleet - call('ZCARD', B), 0)
  if free < n then n, limit = free, 'fleet' end
end
if gap > 0 then
  local kept = tonumber(call('GETRANGE', K, 0, 99)) or 0
  if kept > now + slack + gap + 0.001 then tat = now + slack
  elseif kept > now then tat = kept end
  local free = math.max(math.floor((now + slack - tat) / gap) + 1, 0)
  if free < n then n, limit = free, 'rate' end
end
local function limited()
  if limit ~= 'rate' then return limit end
  return string.format('%.6f', math.max(tat - slack - now, 0))
end
if n == 0 then return {'ok', stamp, waiting, first or '', 0, limited(), -1} end

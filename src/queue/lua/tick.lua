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
--         delayed, rank, cursor, warning}
--         expires: no delivery in QBACKUP expires before, due: first time in
--         QRETRY, delayed: first in QDELAYED if within 15 s; "" if none.
-- Effect  Expired and rqd's (has a field in QDELIVERY): to QRETRY, due now, token
--         and counts kept.  Expired and foreign: payload to Q.  Without
--         payload: dropped.  A time more than a day ahead: set to now.  Due in
--         QDELAYED (from 1e11 on: milliseconds): to Q.  Fields of QDELIVERY whose
--         tag is nowhere and old: removed.  The destination is always written first.
-- Again   Finds less to do.  Counters may be added twice.
local Q, B, C, R, D, L, S = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local call = redis.call
local lease, foreign, requeue = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3] == '1'
local batch, room, rank, cursor = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8]

local t = call('TIME')
local now = t[1] + t[2] / 1e6
local stamp = string.format('%.6f', now)
local judged = math.min(now, tonumber(ARGV[4]))
call('LLEN', Q)
call('HLEN', C)
call('ZCARD', R)
call('HLEN', D)
call('ZCARD', L)
-- Writes nothing, but is not refused at maxmemory.
call('ZREMRANGEBYRANK', B, 1, 0)
local requeued, promoted, dropped, bytes, looked, more, warning = 0, 0, 0, 0, 0, 0, ''
local expires = math.huge

-- One entry that may have expired: true if it left QBACKUP, nil if there is no room.
local function expire(tag, since, value)
  local limit = since + (value and lease or foreign)
  if limit >= judged then
    expires = math.min(expires, limit)
    return false
  end
  local size = call('HSTRLEN', C, tag)
  if size == 0 and call('HEXISTS', C, tag) == 0 then
    call('ZREM', B, tag)
    call('HDEL', D, tag)
    dropped = dropped + 1
    return true
  end
  if value then
    call('ZADD', R, 'NX', stamp, tag)
    call('ZREM', B, tag)
  else
    if bytes > 0 and bytes + size > room then return nil end
    bytes = bytes + size
    call('LPUSH', Q, call('HGET', C, tag))
    call('ZREM', B, tag)
    call('HDEL', C, tag)
  end
  requeued = requeued + 1
  return true
end

-- Ranks below `rank` are entries that an earlier step has left alone.
local function expiry()
  local last = judged - math.min(lease, foreign)
  while looked < batch do
    local want = math.min(batch - looked, 50)
    local found = call('ZRANGE', B, rank, rank + want - 1, 'WITHSCORES')
    local tags = {}
    for i = 1, #found, 2 do
      if tonumber(found[i + 1]) >= last then break end
      tags[#tags + 1] = found[i]
    end
    local values = #tags > 0 and call('HMGET', D, unpack(tags))
    for i, tag in ipairs(tags) do
      looked = looked + 1
      local left = expire(tag, tonumber(found[2 * i]), values[i])
      if left == nil then more = 1 return end
      if not left then rank = rank + 1 end
    end
    if #tags < want then
      local beyond = found[2 * #tags + 2]
      if beyond then expires = math.min(expires, tonumber(beyond) + math.min(lease, foreign)) end
      rank = 0
      return
    end
  end
  more = 1
end

local function clamp()
  local limit = string.format('(%.6f', now + math.max(lease, foreign) + 86400)
  local tags = call('ZRANGEBYSCORE', B, limit, '+inf', 'LIMIT', 0, 50)
  for _, tag in ipairs(tags) do
    call('ZADD', B, stamp, tag)
    warning = 'a lease began in the future: a consumer uses another unit of time, or a wrong clock'
  end
end

local function promote(from, to)
  while true do
    local m = call('ZRANGEBYSCORE', L, from, to, 'LIMIT', 0, 1)[1]
    if not m then return end
    if promoted >= batch or bytes > 0 and bytes + #m > room then more = 1 return end
    call('LPUSH', Q, m)
    call('ZREM', L, m)
    promoted, bytes = promoted + 1, bytes + #m
  end
end

-- Fields that neither zset nor QCONTEXT knows, delivered two leases ago or earlier.
local function sweep()
  local found = call('HSCAN', D, cursor, 'COUNT', 50)
  local fields = found[2]
  for base = 1, #fields, 100 do
    local tags, old = {}, {}
    for i = base, math.min(base + 98, #fields - 1), 2 do
      tags[#tags + 1] = fields[i]
      local time = tonumber(string.match(fields[i + 1], '^%d+ %d+ %S+ (%S+)') or '') or 0
      old[#tags] = time < now - 2 * lease
    end
    local inb, inr = call('ZMSCORE', B, unpack(tags)), call('ZMSCORE', R, unpack(tags))
    for i, tag in ipairs(tags) do
      if old[i] and not inb[i] and not inr[i] and call('HEXISTS', C, tag) == 0 then
        call('HDEL', D, tag)
      end
    end
  end
  cursor = found[1]
end

-- When the first member of QDELAYED falls due, without reading it: it is a
-- payload, of any size.
local function next_delayed()
  local function due(at)
    return call('ZCOUNT', L, '-inf', string.format('%.6f', at)) +
      call('ZCOUNT', L, '1e11', string.format('%.0f', at * 1000)) > 0
  end
  if call('ZCARD', L) == 0 or not due(now + 15) then return '' end
  local low, high = now, now + 15
  if due(now) then return stamp end
  for _ = 1, 12 do
    local middle = (low + high) / 2
    if due(middle) then high = middle else low = middle end
  end
  return string.format('%.6f', high)
end

if requeue then
  expiry()
  clamp()
end
promote('-inf', stamp)
promote('1e11', string.format('%.0f', now * 1000))
if cursor ~= '-' then sweep() end
local due = call('ZRANGE', R, 0, 0, 'WITHSCORES')[2] or ''
local delayed = next_delayed()
local waiting = call('LLEN', Q)
for i = 9, #ARGV - 1, 2 do redis.pcall('HINCRBY', S, ARGV[i], ARGV[i + 1]) end
return {stamp, more, requeued, promoted, dropped, waiting,
  expires < math.huge and string.format('%.6f', expires) or '',
  due, delayed, rank, cursor, warning}

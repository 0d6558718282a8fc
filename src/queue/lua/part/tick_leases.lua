-- tick_leases: the first write; expired leases; fields of QDELIVERY that nobody needs.
-- Needs   tick_begin; hooks.foreign(tag): called with a tag of a foreign consumer that
--         leaves QBACKUP, to put its message back; nil: there are none;
--         hooks.taken(tag, since): true where it is another consumer's by now, and
--         is away from QBACKUP; hooks.leave(tag): called before one of rqd's leaves it
-- Writes nothing, but is not refused at maxmemory.
call('ZREMRANGEBYRANK', B, 1, 0)

-- One entry that may have expired: true if it left QBACKUP, nil if there is no room.
local function expire(tag, since, value)
  local limit = since + (value and lease or foreign)
  if limit >= judged then
    expires = math.min(expires, limit)
    return false
  end
  if hooks.taken and hooks.taken(tag, since) then return true end
  local size = call('HSTRLEN', C, tag)
  if size == 0 and call('HEXISTS', C, tag) == 0 then
    call('ZREM', B, tag)
    call('HDEL', D, tag)
    dropped = dropped + 1
    return true
  end
  if value or not hooks.foreign then
    call('ZADD', R, 'NX', stamp, tag)
    if hooks.leave then hooks.leave(tag) end
  else
    if bytes > 0 and bytes + size > room then return nil end
    bytes = bytes + size
    hooks.foreign(tag)
  end
  call('ZREM', B, tag)
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

-- Leases that began in the future begin now: those of rqd, whose times are Redis'
-- own, after its clock has been set back; others' where they are far off.
local function clamp()
  local far = now + math.max(lease, foreign) + 86400
  local found = call('ZRANGEBYSCORE', B, string.format('(%.6f', now + 1), '+inf', 'WITHSCORES', 'LIMIT', 0, 50)
  for i = 1, #found, 2 do
    if tonumber(found[i + 1]) > far then
      warning = 'a lease began in the future: a consumer uses another unit of time, or a wrong clock'
      call('ZADD', B, stamp, found[i])
    elseif call('HEXISTS', D, found[i]) == 1 then
      call('ZADD', B, stamp, found[i])
    end
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

if requeue then
  expiry()
  clamp()
end
if cursor ~= '-' then sweep() end

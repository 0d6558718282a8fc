-- tick_leases: does the first write, expires leases, and deletes fields of QDELIVERY that
-- nobody needs.
-- Needs   tick_begin; hooks.foreign(tag): called with a tag of a foreign consumer that
--         leaves QBACKUP, to put its message back; nil: there are none;
--         hooks.taken(tag, since): true if another consumer has it by now; it is removed
--         from QBACKUP then; hooks.leave(tag): called before one of rqd's leaves it;
--         hooks.prove(): tests the permissions for the commands of hooks.leave
-- Writes nothing, but goes first so that maxmemory does not refuse the later commands.
call('ZREMRANGEBYRANK', B, 1, 0)

-- Handles one entry that may have expired: true if it left QBACKUP, nil if there is no
-- room.
local function expire(tag, since, own)
  local limit = since + (own and lease or foreign)
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
  if own or not hooks.foreign then
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

-- Ranks below `rank` are entries that an earlier step has skipped.
local function expiry()
  local last = judged - math.min(lease, foreign)
  local size = 0
  while looked < batch and size <= 262144 do
    -- Read them one by one: a tag could be of any size.
    local e = call('ZRANGE', B, rank, rank, 'WITHSCORES')
    local since = tonumber(e[2])
    if not since or since >= last then
      if since then expires = math.min(expires, since + math.min(lease, foreign)) end
      rank = 0
      return
    end
    looked, size = looked + 1, size + #e[1]
    local left = expire(e[1], since, call('HEXISTS', D, e[1]) == 1)
    if left == nil then more = 1 return end
    if not left then rank = rank + 1 end
  end
  more = 1
end

-- Makes leases begin now that began in the future.  Those of rqd have Redis' own times,
-- so its clock has been set back.  Those of others count only if they are far off.
local function clamp()
  local far = now + math.max(lease, foreign) + 86400
  local first = call('ZCOUNT', B, '-inf', string.format('%.6f', now + 1))
  local count, size, found = call('ZCARD', B) - first, 0, {}
  -- Leases of others may be many, and they stay, so begin at a random one.
  local from = math.floor(now * 1e6)
  for i = 0, math.min(50, count) - 1 do
    if size > 65536 then break end
    local rank = first + (from + i) % count
    local e = call('ZRANGE', B, rank, rank, 'WITHSCORES')
    found[#found + 1] = e
    size = size + #e[1]
  end
  for _, e in ipairs(found) do
    if tonumber(e[2]) > far then
      warning = 'a lease began in the future: a consumer uses another unit of time, or a wrong clock'
      call('ZADD', B, stamp, e[1])
    elseif call('HEXISTS', D, e[1]) == 1 then
      call('ZADD', B, stamp, e[1])
    end
  end
end

-- The record of a daemon's pops (see part/seen.lua) is removed a week after the daemon
-- last renewed it.  A daemon renews it while it has messages in flight.
local function sweep_pops(field, value)
  local time = tonumber(string.match(value, '^%d+ %d+ (%S+) %d+$') or '') or 0
  if time < now - 604800 then call('HDEL', D, field) end
end

-- A field of QDELIVERY whose tag is in neither zset, delivered two leases ago or
-- earlier.  Its owner may be alive, and may not know yet that another consumer took the
-- message.  So this only replaces the time by now, marked with "-".  Two leases later
-- the field is deleted, and that of QCONTEXT with it.
local function orphan(tag, value)
  if string.byte(tag) == 1 then return sweep_pops(tag, value) end
  local head, time, tail = string.match(value, '^(%d+ %d+ %S+ )(%S+)( %d+)$')
  time = tonumber(time or '') or 0
  if math.abs(time) > now - 2 * lease then return end
  if call('ZSCORE', B, tag) or call('ZSCORE', R, tag) then return end
  if time >= 0 then
    call('HSET', D, tag, (head or '0 0 - ') .. '-' .. stamp .. (tail or ' 0'))
    return
  end
  call('HDEL', C, tag)
  call('HDEL', D, tag)
end

local function sweep()
  local seen, size = 0, 0
  repeat
    -- Read as few as HSCAN can: names and fields could be of any size.
    local found = call('HSCAN', D, cursor, 'COUNT', 1)
    seen, cursor = seen + 1, found[1]
    for i = 1, #found[2], 2 do
      local tag, value = found[2][i], found[2][i + 1]
      seen, size = seen + 1, size + #tag + #value
      orphan(tag, #value <= 300 and value or '')
    end
  until cursor == '0' or seen >= 100 or size > 65536
end

if requeue then
  -- These remove nothing, but show now whether the commands after the first write are
  -- permitted.
  call('ZREM', B, nobody)
  call('HDEL', C, nobody)
  if hooks.prove then hooks.prove() end
  expiry()
  attempt(clamp)
end
-- After an error begin anew: Redis may have refused the cursor.
if cursor ~= '-' and not attempt(sweep) then cursor = '0' end

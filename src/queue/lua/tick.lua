-- tick: puts expired deliveries and due delayed messages back, removes leftovers and old dead
-- letters, and adds counters.  The step is bounded; "more" asks for another one.
--
-- KEYS    Q QBACKUP QCONTEXT QRETRY QDELIVERY QDELAYED QSTATS QDEAD; of a list QHELD QGROUP QORDER
-- ARGV    lease      seconds
--         foreign    seconds after which a foreign consumer's delivery expires
--         requeue    "1": put expired deliveries back; "0": do only the rest
--         sent       Redis seconds when the caller sent this: a tick that waited
--                    in a stalled server judges leases by that time
--         batch      entries looked at, <= 250
--         maxbytes   payload moved; one message always is
--         rank       where to go on in QBACKUP; 0, or what the last step returned
--         cursor     of the sweep of QDELIVERY; 0, or what the last tick returned; "-": no sweep
--         age        seconds after which dead letters are deleted; "0": never
--         push       of a list: LPUSH, or RPUSH: its left end is the oldest
--         by places  with groups: as pop
--         group scan max  of a stream: scan: where to go on in the pending list; "", or what
--                    the last step returned; max: as pop
--         then       COUNTER DELTA ... for QSTATS
-- Returns {now, more, requeued, promoted, dropped, waiting, expires, due,
--         delayed, rank, cursor, warning, scan, taken, others, ids}
--         expires: no delivery in QBACKUP expires before this time, due: first time
--         in QRETRY, delayed: first in QDELAYED if within 15 s; "" if none; scan: see ARGV;
--         taken: how many the fleet has taken from Q, -1 if that is not known;
--         others: 1 if the tick saw a consumer that takes messages without counting them;
--         ids: of the first eight that were put back, with commas between
-- Effect  Expired and rqd's (has a field in QDELIVERY): to QRETRY, due now, token
--         and counts kept.  Expired and foreign: payload to Q.  Without
--         payload: dropped.  A time more than a day ahead: set to now.  Due in
--         QDELAYED (from 1e11 on: milliseconds): to Q.  Fields of QDELIVERY whose
--         tag is nowhere and old: removed.  The oldest dead letters that are too old:
--         deleted, up to 100 or 256 KiB.  The destination is always written first.
--         Of a zset, all that is expired goes to QRETRY, and ids that were put off and do
--         not run get their scores back.  Of a stream, too; and what another consumer has
--         left pending for longer than foreign (see part/tick_stream.lua).
--         With groups, those whose messages wait for nobody go on (see part/tick_groups.lua).
--         Of a list without groups, what a daemon with groups has held is due, oldest first.
-- Again   Finds less to do.  Counters may be added twice.
--@ sources list groups zset stream
local Q, B, C, R, D, L, S = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local call = redis.call
local lease, foreign, requeue = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3] == '1'
local batch, room, rank, cursor = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8]

local t = call('TIME')
local now = t[1] + t[2] / 1e6
local stamp = string.format('%.6f', now)
local nobody = '\0' .. stamp
local judged = math.min(now, tonumber(ARGV[4]))
call('HLEN', C)
call('ZCARD', R)
call('HLEN', D)
local hooks = {}
local requeued, promoted, dropped, bytes, looked, more, warning = 0, 0, 0, 0, 0, 0, ''
local expires, ids = math.huge, {}

local function attempt(f)
  local plain, last = call, ''
  call = function(command, ...)
    last = command
    return plain(command, ...)
  end
  local ok, e = pcall(f)
  call = plain
  if not ok and warning == '' then
    warning = last .. ': ' .. (type(e) == 'table' and e.err or tostring(e))
  end
  return ok
end
local waiting, counters, delayed = 0, 10, ''
--@ include soonest
--@ for list groups
local H, G, O, push = KEYS[9], KEYS[10], KEYS[11], ARGV[10]
counters = 11
--@ include groups
--@ for groups
local places = tonumber(ARGV[12])
counters = 13
call('ZCARD', H)
call('HLEN', G)
call('ZCARD', O)
--@ include places
--@ for list groups
--@ include taken
call('LLEN', Q)
hooks.foreign = function(tag)
  local body = call('HGET', C, tag)
  if push == 'LPUSH' then
    call('LPUSH', Q, body)
  else
    call('RPUSH', Q, body)
  end
  call('HDEL', C, tag, tag .. '\0saved')
  hooks.others = 1
end
--@ for zset
--@ include unique
due_by(Q, now)
--@ for stream
local group, scan, max = ARGV[10], ARGV[11], tonumber(ARGV[12])
counters = 13
--@ include stream_entry
--@ include stream_message
--@ include stream_new
--@ include full
local crammed = is_full(R)
attempt(function() waiting = unread() end)
--@ end

call('ZREMRANGEBYRANK', B, 1, 0)

-- Handles one entry that may have expired: true if it left QBACKUP, nil if there is no
-- room.
local function expire(tag, since, own)
  local limit = since + (own and lease or foreign)
  if limit >= judged then
    expires = math.min(expires, limit)
    return false
  end
  local size = call('HSTRLEN', C, tag)
  if size == 0 and call('HEXISTS', C, tag) == 0 then
    call('ZREM', B, tag)
    call('HDEL', C, tag .. '\0saved')
    call('HDEL', D, tag)
    dropped = dropped + 1
    return true
  end
  local value = own and #ids < 8 and call('HSTRLEN', D, tag) <= 300 and
      call('HGET', D, tag) or ''
  if own or not hooks.foreign then
    call('ZADD', R, 'NX', stamp, tag)
  else
    if bytes > 0 and bytes + size > room then return nil end
    bytes = bytes + size
    hooks.foreign(tag)
  end
  call('ZREM', B, tag)
  requeued = requeued + 1
  if #ids < 8 and #tag <= 300 then
    local len = string.match(value, '^%d+ %d+ %S+ %S+ (%d+)$')
    ids[#ids + 1] = string.sub(tag, 1, tonumber(len) or -1)
  end
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

-- A field of QDELIVERY whose tag is in neither zset, delivered two leases ago or
-- earlier.  Its owner may be alive, and may not know yet that another consumer took the
-- message.  So this only replaces the time by now, marked with "-".  Two leases later
-- the field is deleted, and that of QCONTEXT with it.
local function orphan(tag, value)
  local head, time, tail = string.match(value, '^(%d+ %d+ %S+ )(%S+)( %d+)$')
  time = tonumber(time or '') or 0
  if math.abs(time) > now - 2 * lease then return end
  if call('ZSCORE', B, tag) or call('ZSCORE', R, tag) then return end
--@ for list groups
  if call('ZSCORE', H, tag) or
      call('HEXISTS', G, tag) == 1 then
    return
  end
--@ end
  if time >= 0 then
    call('HSET', D, tag, (head or '0 0 - ') .. '-' .. stamp .. (tail or ' 0'))
    return
  end
  call('HDEL', C, tag, tag .. '\0saved')
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
  expiry()
  attempt(clamp)
end
-- After an error begin anew: Redis may have refused the cursor.
if cursor ~= '-' and not attempt(sweep) then cursor = '0' end

-- Reads the letters one by one: they are of any size.
local X, age = KEYS[8], tonumber(ARGV[9])
local function forget_letters()
  local last, deleted, size = string.format('%.0f', (now - age) * 1000), 0, 0
  while deleted < 100 and size <= 262144 do
    local e = call('XRANGE', X, '-', last, 'COUNT', 1)[1]
    if not e then return end
    for _, s in ipairs(e[2]) do size = size + #s + 64 end
    call('XDEL', X, e[1])
    deleted = deleted + 1
  end
  more = 1
end

if age > 0 then attempt(forget_letters) end

--@ for list
-- A daemon without groups: nobody would ever deliver what others have held.  Places of messages
-- that are live stay: daemons with groups may go on.  So does what is not rqd's.
local function release()
  for _, key in ipairs({H, O}) do
    local rank, moved, size = 0, 0, 0
    while rank + moved < batch and size <= 262144 do
      local e = call('ZRANGE', key, rank, rank, 'WITHSCORES')
      if not e[1] then break end
      local _, tag, time = parts(e[1])
      if key == H then time, tag = e[2], call('HEXISTS', C, e[1]) == 1 and e[1] end
      size = size + #e[1]
      if tag and (time or not (call('ZSCORE', B, tag) or call('ZSCORE', R, tag))) then
        if time then call('ZADD', R, 'NX', time, tag) end
        unhold(tag)
        call('ZREM', O, e[1])
        call('HDEL', G, tag)
        moved = moved + 1
      else
        rank = rank + 1
      end
    end
    if moved > 0 and call('ZCARD', key) > rank then more = 1 end
  end
end

attempt(release)
--@ for groups
--@ include tick_groups
--@ for list groups
local function add(m) call(push, Q, m) end
--@ for zset
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
waiting = due_by(Q, now)
--@ for stream
--@ include tick_stream
--@ for list groups stream

-- Moves due messages from QDELAYED to the source.  If QDELAYED is wrong, the rest of the
-- tick is done all the same.
local function promote(from, to)
  while true do
    local m = call('ZRANGEBYSCORE', L, from, to, 'LIMIT', 0, 1)[1]
    if not m then return end
    if promoted >= batch or bytes > 0 and bytes + #m > room then more = 1 return end
    add(m)
    call('ZREM', L, m)
    promoted, bytes = promoted + 1, bytes + #m
  end
end

attempt(function()
  -- Removes nothing, but shows now whether messages may leave QDELAYED.
  call('ZREM', L, nobody)
  promote('-inf', stamp)
  promote('1e11', string.format('%.0f', now * 1000))
  local at = soonest(L)
  delayed = at and string.format('%.6f', at) or ''
end)
--@ for list groups
waiting = call('LLEN', Q)

-- How many messages the fleet has taken from the list, and whether others take some uncounted,
-- for the estimate of how long they wait (src/policy/waited.h).
-- Looks at 8 entries of QBACKUP: those with the oldest renewals, and some from a random
-- one on.  An entry without a field in QDELIVERY is a foreign consumer's.
attempt(function()
  local size = 0
  local count = call('ZCARD', B)
  for i = 0, math.min(count, 8) - 1 do
    local rank = i < 2 and i or (math.floor(now * 1e6) + i) % count
    local tag = call('ZRANGE', B, rank, rank)[1]
    size = size + #tag
    if call('HEXISTS', D, tag) == 0 then hooks.others = 1 end
    if hooks.others or size > 65536 then break end
  end
end)
hooks.so_far = taken_so_far(S)
--@ end

local due = call('ZRANGE', R, 0, 0, 'WITHSCORES')[2] or ''
for i = counters, #ARGV - 1, 2 do redis.pcall('HINCRBY', S, ARGV[i], ARGV[i + 1]) end
return {stamp, more, requeued, promoted, dropped, waiting,
  expires < math.huge and string.format('%.6f', expires) or '',
  due, delayed, rank, cursor, warning, hooks.scan or '', hooks.so_far or -1, hooks.others or 0, table.concat(ids, ',')}

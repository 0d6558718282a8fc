-- stream_tick: tick for a stream.
--
-- KEYS    as tick
-- ARGV    lease foreign requeue sent batch maxbytes rank cursor, as tick; then
--         group
--         scan       where to go on in the pending list; "", or what the last step
--                    returned
--         max        as pop
--         COUNTER DELTA ..., as tick
-- Returns as tick; requeued and dropped also count entries of the pending list;
--         scan: see ARGV; waiting: 0 or 1; taken: -1
-- Effect  Expired: as tick, and acknowledged (XACK), unless another consumer has
--         claimed the entry since, and so owns it.  Pending, not in
--         QBACKUP or QRETRY, and idle for longer than foreign: another consumer has
--         abandoned it.  Its message is written to QCONTEXT, QDELIVERY and QRETRY,
--         due now, then it is acknowledged.  One whose entry is no longer in the
--         stream (trimmed or deleted) is acknowledged and counted as dropped.
--         Due in QDELAYED: added to the stream.
-- Again   Finds less to do.  Counters may be added twice.
local Q, B, C, R, D, L, S = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local group, scan, max = ARGV[9], ARGV[10], tonumber(ARGV[11])
--@ include tick_begin
--@ include soonest
--@ include stream_entry
--@ include stream_message
--@ include stream_new
local waiting = 0
attempt(function() waiting = unread() end)

-- Entries that another consumer was given after our last renewal: it has claimed them,
-- or they belong to another stream, see stream_entry.  The other consumer owns them.
-- The field in QDELIVERY stays, and tells our daemon so.
local theirs = {}
function hooks.taken(tag, since)
  local row = pending(entry(tag))
  theirs[tag] = row and now - row[3] / 1000 > since + 1
  if not theirs[tag] or not claimed(row) then return false end
  call('ZREM', B, tag)
  call('HDEL', C, tag)
  return true
end

function hooks.prove()
  call('XACK', Q, group, '0-0')
end

function hooks.leave(tag)
  local id = entry(tag)
  if id and not theirs[tag] then call('XACK', Q, group, id) end
end
--@ include tick_leases

-- Puts an abandoned entry where pops find it; false if there is no room.
local function take_over(id)
  if bytes > room then return false end
  local found = call('XRANGE', Q, id, id)[1]
  if not found then
    call('XACK', Q, group, id)
    dropped = dropped + 1
    return true
  end
  local body, cost = message(found[2], max)
  if bytes > 0 and bytes + cost > room then return false end
  bytes = bytes + cost
  call('HSET', C, id, body)
  call('HSET', D, id, '0 0 - ' .. stamp .. ' ' .. #id)
  call('ZADD', R, stamp, id)
  call('XACK', Q, group, id)
  requeued = requeued + 1
  return true
end

-- The entry is in QRETRY, and still pending: its XACK has failed.  Or it is the entry
-- of another stream, which waits until its id is free.
local function acknowledge_again(id)
  if bytes > room then return false end
  local found = call('XRANGE', Q, id, id)[1]
  local body, cost = message(found and found[2] or {}, max)
  bytes = bytes + cost
  if not found or body == call('HGET', C, id) then call('XACK', Q, group, id) end
  return true
end

-- Handles the entries of a page that nobody has renewed; false if there is no room for
-- more.
local function page(found)
  local ids = {}
  for _, row in ipairs(found) do
    local left = foreign - row[3] / 1000 + now - judged
    if left < 0 then ids[#ids + 1] = row[1]
    else expires = math.min(expires, now + left) end
  end
  if #ids == 0 then return true end
  local inb, inr = call('ZMSCORE', B, unpack(ids)), call('ZMSCORE', R, unpack(ids))
  for i, id in ipairs(ids) do
    if inr[i] then
      if not acknowledge_again(id) then return false end
    elseif not inb[i] and not take_over(id) then
      return false
    end
  end
  return true
end

-- Goes through the pending list from a place on, as far as one step may; returns where
-- to go on, "" at the end.
local function walk(from)
  local seen = 0
  while seen < batch do
    local found = rows(from == '' and '-' or from, '+', 50)
    if #found == 0 then return '' end
    if not page(found) then more = 1 return from end
    from = #found == 50 and beyond(found[#found][1]) or ''
    if from == '' then return '' end
    seen = seen + #found
  end
  return from
end

-- Looks at the oldest entries, which are most likely abandoned, and at a piece of the
-- others: the list may be long, and each daemon of the fleet comes here every 10 s.
-- Another step follows if there was work.
local function look()
  local before = requeued + dropped
  walk('')
  if more == 0 then scan = walk(scan) end
  if requeued + dropped > before then more = 1 end
end

local function add(m)
  call('XADD', Q, '*', 'message', m)
  waiting = 1
end

if requeue then
  local ok = attempt(function()
    call('ZADD', R, 'XX', 0, nobody)
    look()
  end)
  -- Begin anew: Redis may have refused the place.
  if not ok then scan = '' end
end
--@ include promote
local counters = 12
hooks.scan = scan
--@ include tick_end

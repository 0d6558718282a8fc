-- tick_stream: takes over what is pending, not in QBACKUP or QRETRY, and idle for longer than
-- foreign: another consumer has abandoned it, or a pop has failed in the middle.
-- Needs   tick, full, crammed: is_full(); stream_entry, stream_new, stream_message; scan max: as in ARGV; waiting
-- Gives   add(m), for promote; scan: where the next step goes on
-- Its message is written to QCONTEXT, QDELIVERY and QRETRY, due now.  One whose entry is no
-- longer in the stream (trimmed or deleted) is acknowledged and counted as dropped.
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
  call('HDEL', C, id .. '\0saved')
  call('ZADD', R, stamp, id)
  requeued = requeued + 1
  if #ids < 8 then ids[#ids + 1] = id end
  return true
end

-- Handles the entries of a page that nobody has renewed; false if there is no room for
-- more.
local function page(found)
  local ids = {}
  for _, row in ipairs(found) do
    local left = foreign - row[3] / 1000 + now - judged
    if left < 0 then
      ids[#ids + 1] = row[1]
    else
      expires = math.min(expires, now + left)
    end
  end
  if #ids == 0 then return true end
  local inb, inr = call('ZMSCORE', B, unpack(ids)), call('ZMSCORE', R, unpack(ids))
  for i, id in ipairs(ids) do
    if not inb[i] and not inr[i] and not take_over(id) then return false end
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

-- A message that is taken over is copied: while Redis is full only a few may be.
if crammed then
  room = math.min(room, 65536)
  requeue = requeue and call('ZCARD', B) + call('ZCARD', R) < MANY
end

local function add(m)
  call('XADD', Q, '*', 'message', m)
  waiting = 1
end

if requeue then
  local ok = attempt(function()
    call('ZADD', R, 'XX', 0, nobody)
    call('XACK', Q, group, '0-0')
    look()
  end)
  -- Begin anew: Redis may have refused the place.
  if not ok then scan = '' end
end
hooks.scan = scan

-- pop_retries: the first write; and functions that lease due retries, which keep tag
-- and counts.
-- Needs   pop_begin, pop_gate, mark; hooks.retried(tags): called with tags that are in
--         QBACKUP, before they leave QRETRY; not with cancelled ones; hooks.prove(due):
--         calls each command that follows the first write to the source in a way that
--         changes nothing, so that a missing permission shows now; due: retries are
--         taken, too
-- Gives   retries(most): the longest due ones first, until got is most;
--         fewest(): one retry: of the first 50 due ones that with the fewest attempts;
--         left: the rest of the room in ARGV[9]; each: the room that a message takes
--         which has failed; text(number), give(), got, bytes, dropped, full: no room for
--         more; lease(zadd, hset, copy), which writes to QDELIVERY, QCONTEXT, QBACKUP
-- due: there may be due retries that this call has not looked at.  passed: how many it
-- has passed over, because they have failed and there was no room for that.
local looked, due, passed = 0, first ~= nil and tonumber(first) <= now, 0
local left, each = match(ARGV[9], ' (%d+) (%d+)$')
left, each = tonumber(left or math.huge), tonumber(each or 1)

-- Each of these commands will follow, and changes nothing now.  The first is one that
-- Redis does not refuse at maxmemory; after it Redis refuses none.  So only a missing
-- permission can end the script from here on, and it does so here.  After the first
-- real write it would leave a message twice, and once more with each pop.  HSET cannot
-- be tested: it is the first real write.
if due then
  call('ZREM', R, nobody)
  call('HDEL', D, nobody)
  call('HGET', D, nobody)
  call('HSTRLEN', C, nobody)
end
hooks.prove(due)
call('ZADD', B, 'XX', 0, nobody)
-- Writes the rate as if all n came; it is written again when the number is known.
local function save_rate(messages)
  local ahead = tat + messages * gap
  return 'SET', K, string.format('%.6f', ahead), 'PX', math.ceil((ahead - now) * 1000) + 1000
end
if gap > 0 then call(save_rate(n)) end
local out, got, bytes, dropped, full = {'ok', stamp, 0, '', 0, '', -1}, 0, 0, 0, false

-- Faster than '..', which makes text of a number as of a fraction, at the cost of a
-- small command.
local function text(number) return string.format('%d', number) end

local function give(tag, idlen, token, attempts, crashes, body)
  local o = #out
  out[o + 1], out[o + 2], out[o + 3] = tag, idlen, token
  out[o + 4], out[o + 5], out[o + 6] = attempts, crashes, body
end

-- Redis keeps small zsets and hashes as lists.  It searches them from end to end, and
-- reads each score from text.  That is best for a few entries, but most of the cost of
-- a batch.  A name that is too long for such a list makes Redis use an index instead;
-- it is deleted at once.  No tag has a NUL.
local indexed = false
local function lease(zadd, hset, copy)
  local long = not indexed and #zadd >= 16 and string.rep('\0', 65)
  if long then
    indexed = true
    zadd[#zadd + 1], zadd[#zadd + 2] = zadd[1], zadd[2]
    zadd[1], zadd[2] = stamp, long
    hset[#hset + 1], hset[#hset + 2] = long, ''
    copy[#copy + 1], copy[#copy + 2] = long, ''
    call('ZREM', B, nobody)
    call('HDEL', D, nobody)
  end
  sign(hset)
  call('HSET', D, unpack(hset))
  if long then call('HDEL', D, long) end
  call('HSET', C, unpack(copy))
  if long then call('HDEL', C, long) end
  call('ZADD', B, unpack(zadd))
  if long then call('ZREM', B, long) end
end

-- Leases these due retries, as far as there is room.  values: their fields in
-- QDELIVERY.
local function take(tags, values)
  local zadd, hset, back, leave, gone = {}, {}, {}, {}, {}
  for i, tag in ipairs(tags) do
    local a, c, tok, l = match(values[i], '^(%d+) (%d+) (%S+) %S+ (%d+)$')
    local attempts = math.min(tonumber(a) or 0, 999999999)
    local bare, mark, _, front = unmark(tok or '-')
    local crashes = math.min(tonumber(c) or 0, 999999999) + (bare ~= '-' and 1 or 0)
    local failed = attempts + crashes > 0 and not mark
    local pass = failed and left < each
    local size = pass and 0 or call('HSTRLEN', C, tag)
    if got > 0 and bytes + size > room or left < 1 then full = true break end
    local body = not pass and (size > max and size or call('HGET', C, tag))
    looked = looked + 1
    if pass then
      passed = passed + 1
    elseif not body then
      leave[#leave + 1], gone[#gone + 1] = tag, tag
    else
      leave[#leave + 1] = tag
      left = left - (failed and each or 1)
      local idlen = math.min(tonumber(l) or #tag, #tag)
      got, bytes = got + 1, bytes + size
      if not mark then back[#back + 1] = tag end
      if #tag > 300 then bytes = bytes + #tag end
      local token = (front or '') .. name .. text(got)
      zadd[#zadd + 1], zadd[#zadd + 2] = stamp, tag
      hset[#hset + 1], hset[#hset + 2] = tag, attempts .. ' ' .. crashes .. ' ' .. token .. ' ' .. stamp .. ' ' .. text(idlen)
      give(tag, idlen, token, attempts, crashes, body)
    end
  end
  if #leave == 0 then return end
  if #zadd > 0 then
    sign(hset)
    call('HSET', D, unpack(hset))
    call('ZADD', B, unpack(zadd))
    if hooks.retried and #back > 0 then hooks.retried(back) end
  end
  call('ZREM', R, unpack(leave))
  if #gone > 0 then
    dropped = dropped + #gone
    call('HDEL', D, unpack(gone))
  end
end

-- Reads the next `count` due tags and their fields of QDELIVERY; fewer if this pop has
-- read many bytes of them.  Reads them one by one: both could be of any size.
local size = 0
local function next_due(count)
  local tags, values = {}, {}
  while #tags < count and size <= 65536 do
    local rank = passed + #tags
    local e = call('ZRANGE', R, rank, rank, 'WITHSCORES')
    if not e[2] or tonumber(e[2]) > now then break end
    local value = call('HGET', D, e[1]) or ''
    size = size + #e[1] + #value
    tags[#tags + 1], values[#values + 1] = e[1], #value <= 300 and value or ''
  end
  return tags, values
end

local function retries(most)
  while due and got < most and not full and looked < n + 100 do
    local tags, values = next_due(math.min(most - got, 25))
    due = #tags > 0
    if due then take(tags, values) end
  end
end

local function fewest()
  if not due or got >= n then return end
  local tags, values = next_due(50)
  if #tags == 0 then return end
  local best, least
  for i in ipairs(tags) do
    local attempts = tonumber(match(values[i], '^%d+')) or 0
    if not least or attempts < least then best, least = i, attempts end
  end
  take({tags[best]}, {values[best]})
end

-- pop_retries: the first write; and functions that lease due retries, which keep tag
-- and counts.
-- Needs   pop_begin, pop_gate; hooks.retried(tags): called with tags that are in
--         QBACKUP, before they leave QRETRY
-- Gives   retries(most): the longest due ones first, until got is most;
--         fewest(): one, of the first 50 that are due that with the fewest attempts;
--         text(number), give(), got, bytes, dropped, full: no room for more; lease(zadd, hset, copy),
--         which writes to QBACKUP, QDELIVERY, QCONTEXT (nil: not there)
-- Writes nothing, but is not refused at maxmemory: from here on only a missing
-- permission can strike.
call('ZREMRANGEBYRANK', B, 1, 0)
-- The rate is written for all n, and again when it is known how many came.
local function save_rate(messages)
  local ahead = tat + messages * gap
  return 'SET', K, string.format('%.6f', ahead), 'PX', math.ceil((ahead - now) * 1000) + 1000
end
if gap > 0 then call(save_rate(n)) end
local out, got, bytes, dropped, full = {'ok', stamp, 0, '', 0, ''}, 0, 0, 0, false

-- By '..' a number would become text as a fraction does, at the cost of a small command.
local function text(number) return string.format('%d', number) end

local function give(tag, idlen, token, attempts, crashes, body)
  local o = #out
  out[o + 1], out[o + 2], out[o + 3] = tag, idlen, token
  out[o + 4], out[o + 5], out[o + 6] = attempts, crashes, body
end

-- Redis keeps small zsets and hashes as lists that it searches from end to end,
-- and a score there as text that it reads for each comparison.  That is best for
-- a few; for a batch it is most of the cost.  A name too long for such a list, which
-- goes at once, makes Redis keep an index instead.  No tag has a NUL.
local indexed = false
local function lease(zadd, hset, copy)
  local long = not indexed and #zadd >= 16 and string.rep('\0', 65)
  if long then
    indexed = true
    zadd[#zadd + 1], zadd[#zadd + 2] = zadd[1], zadd[2]
    zadd[1], zadd[2] = stamp, long
    hset[#hset + 1], hset[#hset + 2] = long, ''
    if copy then copy[#copy + 1], copy[#copy + 2] = long, '' end
  end
  call('ZADD', B, unpack(zadd))
  if long then call('ZREM', B, long) end
  call('HSET', D, unpack(hset))
  if long then call('HDEL', D, long) end
  if not copy then return end
  call('HSET', C, unpack(copy))
  if long then call('HDEL', C, long) end
end

-- due: there may be due retries that this call has not looked at.
local looked, due = 0, first ~= nil and tonumber(first) <= now

-- Leases these due retries, whose fields in QDELIVERY are values, as far as there is
-- room for them.  False: none has left QRETRY.
local function take(tags, values)
  local zadd, hset, back, leave, gone = {}, {}, {}, {}, {}
  for i, tag in ipairs(tags) do
    local size = call('HSTRLEN', C, tag)
    if got > 0 and bytes + size > room then full = true break end
    local body = size > max and size or call('HGET', C, tag)
    looked = looked + 1
    leave[#leave + 1] = tag
    if not body then
      gone[#gone + 1] = tag
    else
      local a, c, tok, l = match(values[i] or '', '^(%d+) (%d+) (%S+) %S+ (%d+)$')
      local attempts = math.min(tonumber(a) or 0, 999999999)
      local crashes = math.min(tonumber(c) or 0, 999999999) + ((tok or '-') ~= '-' and 1 or 0)
      local idlen = math.min(tonumber(l) or #tag, #tag)
      got, bytes, back[#back + 1] = got + 1, bytes + size, tag
      local token = name .. text(got)
      zadd[#zadd + 1], zadd[#zadd + 2] = stamp, tag
      hset[#hset + 1], hset[#hset + 2] = tag, attempts .. ' ' .. crashes .. ' ' .. token .. ' ' .. stamp .. ' ' .. text(idlen)
      give(tag, idlen, token, attempts, crashes, body)
    end
  end
  if #leave == 0 then return false end
  if #zadd > 0 then
    call('HSET', D, unpack(hset))
    call('ZADD', B, unpack(zadd))
    if hooks.retried then hooks.retried(back) end
  end
  call('ZREM', R, unpack(leave))
  if #gone > 0 then
    dropped = dropped + #gone
    call('HDEL', D, unpack(gone))
  end
  return true
end

local function first_due(count)
  return call('ZRANGEBYSCORE', R, '-inf', stamp, 'LIMIT', 0, count)
end

local function retries(most)
  while due and got < most and not full and looked < n + 100 do
    local tags = first_due(math.min(most - got, 25))
    due = #tags > 0 and take(tags, call('HMGET', D, unpack(tags)))
  end
end

local function fewest()
  local tags = due and got < n and first_due(50) or {}
  if #tags == 0 then return end
  local values = call('HMGET', D, unpack(tags))
  local best, least
  for i in ipairs(tags) do
    local attempts = tonumber(match(values[i] or '', '^%d+')) or 0
    if not least or attempts < least then best, least = i, attempts end
  end
  take({tags[best]}, {values[best]})
end

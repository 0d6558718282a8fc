-- pop_stream: takes entries that are new to the group.
-- Needs   pop, stream_message, xread(id)
-- Gives   fresh(enough)
--
-- XREADGROUP reads an entry, and puts it into the group's pending list, where it stays until it
-- is done.  Then the script writes its message to QCONTEXT, QDELIVERY and, last, QBACKUP.  After
-- an error in the middle an entry is pending but not in QBACKUP: the tick finds it there.  It
-- reads entries one by one, since their sizes are unknown before.
--
-- The id is the entry's.  The tag is the id, or id#token if the id is in QBACKUP or QRETRY;
-- such an entry does not stay pending.
-- The next entry, or nil at the end of the stream.
local function read()
  local found = xread('>')
  return found and found[1][2][1]
end

-- Leases entries, all of them pending since a moment ago.
local function lease(entries)
  local tags, zadd, hset, copy, twice = {}, {}, {}, {}, {}
  for i, e in ipairs(entries) do tags[i] = e.id end
  local inb, inr = call('ZMSCORE', B, unpack(tags)), call('ZMSCORE', R, unpack(tags))
  for i, e in ipairs(entries) do
    local tag, k = e.id, 2 * i - 1
    if inb[i] or inr[i] then
      repeat tag = tag .. '#' .. e.token
      until not (call('ZSCORE', B, tag) or call('ZSCORE', R, tag))
      twice[#twice + 1] = e.id
    end
    zadd[k], zadd[k + 1] = stamp, tag
    hset[k], hset[k + 1] = tag, '0 0 ' .. e.token .. ' ' .. stamp .. ' ' .. text(#e.id)
    copy[k], copy[k + 1] = tag, e.body
    local body = #e.body > max and #e.body or e.body
    -- An entry with too many fields counts as too large, whatever its size.
    if e.large then body = math.max(#e.body, max + 1) end
    give(tag, #e.id, e.token, 0, 0, body)
  end
  local new = call('HSET', C, unpack(copy)) + call('HSET', D, unpack(hset))
  call('ZADD', B, unpack(zadd))
  -- As in pop_list.
  for i = 1, new < #hset and #hset or 0, 2 do redis.pcall('HDEL', C, hset[i] .. '\0saved') end
  -- An entry that is pending under an id belongs to the tag that is the id.
  if #twice > 0 then call('XACK', Q, group, unpack(twice)) end
end

-- A stream gives its entries in their order, so it has no turn "newest".
local function fresh(enough)
  while got < enough and bytes < room and waiting == 1 and not full and left >= 1 do
    local entries = {}
    repeat
      local e = read()
      if e then
        local body, cost, large = message(e[2], max)
        got, bytes, left = got + 1, bytes + cost, left - 1
        entries[#entries + 1] = {id = e[1], body = body, large = large, token = name .. text(got)}
      else
        waiting = 0
      end
    until waiting == 0 or #entries == 25 or got == enough or bytes >= room or left < 1
    if #entries > 0 then lease(entries) end
  end
end

-- stream_pop: leases due retries and entries new to the group to the caller.
--
-- KEYS    as pop
-- ARGV    n maxbytes max call deadline fleet gap slack turn prev, as pop; then
--         group      created if it is missing, at the beginning of the stream
--         consumer   the caller's name in it
--         message_max  the names and values of a larger entry are not made JSON
-- Returns as pop; waiting: 0 if the group is at the end of the stream, else 1.
--         The script reads entries one by one, since their sizes are unknown before:
--         the last may go beyond maxbytes.
-- Effect  XREADGROUP reads an entry, and puts it into the group's pending list.  Then
--         the script writes its message to QCONTEXT, QDELIVERY and, last, QBACKUP.
--         After an error in the middle an entry is pending but not in QBACKUP: the
--         tick finds it there.  Retries as pop.
-- Again   A second call reads other entries.  After a lost reply, mine tells which
--         messages the call has taken.
--
-- The id is the entry's.  The tag is the id, or id#token if the id is in
-- QBACKUP or QRETRY; such an entry does not stay pending.
local Q, B, C, R, D, P, K = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local group, consumer, message_max = ARGV[11], ARGV[12], tonumber(ARGV[13])
--@ include seen
--@ include mark
--@ include pop_begin
--@ include pause
--@ include stream_new
--@ include stream_message
-- Without limits of the fleet, the reads below tell the same at no extra cost.
local waiting = (tonumber(ARGV[6]) > 0 or tonumber(ARGV[7]) > 0) and unread() or 1
--@ include pop_gate

-- Reads the entries after an id; ">" stands for those that the group has not been given
-- yet.
local function xread(after)
  local found = redis.pcall('XREADGROUP', 'GROUP', group, consumer, 'COUNT', 1, 'STREAMS', Q, after)
  if found and found.err then
    if find(found.err, 'NOGROUP', 1, true) then
      call('XGROUP', 'CREATE', Q, group, '0', 'MKSTREAM')
    end
    found = call('XREADGROUP', 'GROUP', group, consumer, 'COUNT', 1, 'STREAMS', Q, after)
  end
  return found
end

-- Writes a field and deletes it: an entry that was read must be leased, so a missing
-- permission must show before.
hooks.prove = function(due)
  call('ZMSCORE', B, nobody)
  call('HDEL', D, nobody)
  call('HSET', D, nobody, '')
  call('HDEL', D, nobody)
  if due then xread('18446744073709551615-18446744073709551614') end
  call('XACK', Q, group, '0-0')
end
--@ include pop_retries

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
    if e.large then body = math.max(#e.body, message_max + 1) end
    give(tag, #e.id, e.token, 0, 0, body)
  end
  sign(hset)
  call('HSET', C, unpack(copy))
  call('HSET', D, unpack(hset))
  call('ZADD', B, unpack(zadd))
  -- An entry that is pending under an id belongs to the tag that is the id.
  if #twice > 0 then call('XACK', Q, group, unpack(twice)) end
end

-- A stream gives its entries in their order, so it has no turn "newest".
local function fresh(most)
  while got < most and bytes < room and waiting == 1 and not full and left >= 1 do
    local entries = {}
    repeat
      local e = read()
      if e then
        local body, cost, large = message(e[2], message_max)
        got, bytes, left = got + 1, bytes + cost, left - 1
        entries[#entries + 1] = {id = e[1], body = body, large = large, token = name .. text(got)}
      else
        waiting = 0
      end
    until waiting == 0 or #entries == 25 or got == most or bytes >= room or left < 1
    if #entries > 0 then lease(entries) end
  end
end
--@ include pop_turns
--@ include pop_end

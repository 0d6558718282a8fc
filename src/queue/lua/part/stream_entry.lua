-- stream_entry: reads the pending list of the group, and takes entries from it.
-- Needs   call; Q group: the stream, its consumer group
-- Gives   entry(tag): the id of the tag's entry, nil if the tag has none;
--         rows(from, to, count): {id, consumer, milliseconds idle, deliveries} of
--         entries in the pending list; acknowledge(tags): done, whoever has them; without
--         an entry it only shows whether that is permitted
local function entry(tag)
  local ms, seq = string.match(tag, '^(%d+)%-(%d+)$')
  local function fits(s) return #s < 20 or #s == 20 and s <= '18446744073709551615' end
  return ms and fits(ms) and fits(seq) and ms .. '-' .. seq or nil
end

-- Without a group nothing is pending; any other error is passed on.
local function rows(from, to, count)
  local found = redis.pcall('XPENDING', Q, group, from, to, count)
  if not found.err then return found end
  if string.find(found.err, 'NOGROUP', 1, true) then return {} end
  return call('XPENDING', Q, group, from, to, count)
end

local function acknowledge(tags)
  local ids = {}
  for _, tag in ipairs(tags) do ids[#ids + 1] = entry(tag) end
  call('XACK', Q, group, ids[1] or '0-0', unpack(ids, 2))
end

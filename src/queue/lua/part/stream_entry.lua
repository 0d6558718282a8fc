-- stream_entry: reads the pending list of the group.
-- Needs   call; Q group: the stream, its consumer group
-- Gives   entry(tag): the id of the tag's entry, nil if the tag has none;
--         rows(from, to, count): {id, consumer, milliseconds idle, deliveries} of
--         entries in the pending list; pending(id): of this one, or nil
--         claimed(row): whether another consumer was given it after us.  An entry of
--         the same id in a new stream, made after ours was deleted, does not count.
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

local function pending(id)
  return id and rows(id, id, 1)[1]
end

local function claimed(row)
  return row and row[4] > 1
end

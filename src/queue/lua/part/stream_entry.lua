-- stream_entry: the pending list of the group.
-- Needs   call; Q group: the stream, its consumer group
-- Gives   entry(tag): the id of the entry that a tag is of (the tag is the id, or
--         id#token), nil where it can be of none; pending(id): {id, consumer,
--         milliseconds idle, deliveries} as the pending list has it, or nil
local function entry(tag)
  local ms, seq = string.match(tag, '^(%d+)%-(%d+)%f[#%z]')
  local function fits(s) return #s < 20 or #s == 20 and s <= '18446744073709551615' end
  return ms and fits(ms) and fits(seq) and ms .. '-' .. seq or nil
end

-- An error is that there is no group: then nothing is pending.
local function pending(id)
  local found = id and redis.pcall('XPENDING', Q, group, id, id, 1)
  return found and found[1]
end

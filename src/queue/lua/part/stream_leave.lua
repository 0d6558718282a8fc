-- stream_leave: acknowledges entries of a stream that leave QBACKUP.
-- Needs   stream_entry, and what that needs; consumer: the caller's name in the group; hooks
-- Gives   hooks.taken(tag), hooks.leave(tags): see settle_begin and settle_all
local known = {}
local function row_of(tag)
  if known[tag] == nil then known[tag] = pending(entry(tag)) or false end
  return known[tag]
end

function hooks.taken(tag)
  local row = row_of(tag)
  return claimed(row) and row[2] ~= consumer
end

function hooks.leave(tags)
  local ids = {}
  for _, tag in ipairs(tags) do
    local row = row_of(tag)
    if row and row[2] == consumer then ids[#ids + 1] = row[1] end
  end
  -- Without an id this tests the permission for XACK: no entry has the id 0-0.
  call('XACK', Q, group, ids[1] or '0-0', unpack(ids, 2))
end

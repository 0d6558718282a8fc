-- stream_new: tells whether there is an entry that the group has not been given.
-- Needs   call; Q group: the stream, its consumer group
-- Gives   position(): the last id that the group has been given, and how many came
--         after it (false: not known); nil if there is no such group
--         beyond(id): the beginning of a range with all ids after this one; nil: there
--         can be none
--         unread(): 1 or 0; 1 also if the group is missing: a pop creates it
-- The id of the newest entry that ever was does not help: that entry may have been
-- deleted.  The server's own count, from 7.0 on, may be unknown.
local function position()
  if call('XLEN', Q) == 0 and
      call('EXISTS', Q) == 0 then
    return nil
  end
  for _, info in ipairs(call('XINFO', 'GROUPS', Q)) do
    local g = {}
    for i = 1, #info, 2 do g[info[i]] = info[i + 1] end
    if g.name == group then return g['last-delivered-id'], g.lag or false end
  end
end

local function beyond(id)
  return id ~= '18446744073709551615-18446744073709551615' and '(' .. id or nil
end

local function unread()
  local last = position()
  if not last then return 1 end
  return beyond(last) and #call('XRANGE', Q, beyond(last), '+', 'COUNT', 1) or 0
end

-- unique_leave: gives ids that were put off while they ran their scores back.
-- Needs   unique, and what that needs; Q: the zset of ids; hooks
-- Gives   hooks.leave(tags), hooks.due(): see settle_begin and settle_all
local again = false
call('ZCARD', Q)
hooks.leave = function(tags)
  for _, tag in ipairs(tags) do again = put_back(id_of(tag)) or again end
end
hooks.due = function() return again and '0' or nil end

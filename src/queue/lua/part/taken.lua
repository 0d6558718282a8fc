-- taken: reads how many messages the fleet has taken from a list.
-- Needs   nothing
-- Gives   taken_so_far(S): as QSTATS has it; -1 if it is not known
local function taken_so_far(S)
  local size = redis.pcall('HSTRLEN', S, 'taken')
  if size == 0 then return 0 end
  if type(size) ~= 'number' or size > 20 then return -1 end
  local taken = redis.pcall('HGET', S, 'taken')
  return type(taken) == 'string' and tonumber(taken) or -1
end

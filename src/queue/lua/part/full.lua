-- full: whether Redis is full.  At maxmemory it refuses each command that may need memory, unless
-- the script has written before.
-- Needs   call
-- Gives   is_full(zset): asks before the script's first write, and shows whether ZADD is permitted;
--         MANY: how many messages of a queue may be in flight or retries before no script that
--         finds Redis full adds any: each takes some 400 bytes beside its text
local MANY = 250

local function is_full(zset)
  local answer = redis.pcall('ZADD', zset, 'XX', 0, '\0')
  if type(answer) ~= 'table' or not answer.err then return false end
  if string.find(answer.err, '^%-?OOM') then return true end
  return call('ZADD', zset, 'XX', 0, '\0')
end

-- forget_queue: deletes the keys of a queue that is gone.
--
-- KEYS    Q QBACKUP QRETRY QDELAYED QDEAD QHELD and the others of the queue
-- ARGV    "force": delete the keys even if they hold messages
--         "count": only count
-- Returns {keys, messages}: how many there are; if there are messages, nothing is
--         deleted unless forced
-- Effect  The keys are gone.
-- Again   Finds none.
local call = redis.call
local size = {
  list = function(key) return call('LLEN', key) end,
  zset = function(key) return call('ZCARD', key) end,
  stream = function(key) return call('XLEN', key) end
}
local keys, messages = {}, 0
for i, key in ipairs(KEYS) do
  local type = call('TYPE', key).ok
  if type ~= 'none' then keys[#keys + 1] = key end
  if i <= 6 and type ~= 'none' then messages = messages + (size[type] and size[type](key) or 1) end
end
if ARGV[1] ~= 'count' and (messages == 0 or ARGV[1] == 'force') then
  for _, key in ipairs(keys) do call('UNLINK', key) end
end
return {#keys, messages}

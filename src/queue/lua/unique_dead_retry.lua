-- unique_dead_retry: enqueues the ids of dead letters of kind "unique".
--
-- KEYS    Q QDEAD; Q: zset, id -> due time
-- ARGV    as dead_retry
-- Returns as dead_retry
-- Effect  Each id is in Q, due now (or before, if it was), before its letter is
--         deleted.  A letter without message stays.
-- Again   Safe to repeat: it passes over a letter that is gone, and queues an id once.
local Q, X = KEYS[1], KEYS[2]
local call = redis.call
local room = tonumber(ARGV[1])

local t = call('TIME')
local now = string.format('%.6f', t[1] + t[2] / 1e6)
call('XLEN', X)
-- These commands change nothing.  They go first so that maxmemory refuses none of the
-- later ones, and so that a missing permission shows before the first change.
call('ZREMRANGEBYRANK', Q, 1, 0)
call('XDEL', X, '0-0')

local done, moved, bytes = 0, 0, 0
for i = 2, #ARGV do
  local id = nil
  if bytes > room then break end
  local e = call('XRANGE', X, ARGV[i], ARGV[i])[1]
  for k = 1, e and #e[2] or 0, 2 do
    bytes = bytes + #e[2][k] + #e[2][k + 1] + 128
    if e[2][k] == 'message' then id = e[2][k + 1] end
  end
  if id then
    if moved > 0 and bytes > room then break end
    call('ZADD', Q, 'LT', now, id)
    call('XDEL', X, ARGV[i])
    moved = moved + 1
  end
  done = done + 1
end
return {done, moved}

-- purge: deletes the oldest of what waits in one key.
--
-- KEYS    a list, a sorted set, or a stream of dead letters
-- ARGV    limit      deleted per call, at most
--         end        of a list, where the oldest are: "right" or "left"
-- Returns how many were deleted
-- Effect  They are gone: from that end of a list, those with the lowest scores, the
--         first entries.
-- Again   Deletes as many again: whoever gets no reply must not send it again.
local K, limit, call = KEYS[1], tonumber(ARGV[1]), redis.call
local type = call('TYPE', K).ok
if type == 'list' then
  local n = math.min(limit, call('LLEN', K))
  if ARGV[2] == 'left' then call('LTRIM', K, n, -1) else call('LTRIM', K, 0, -n - 1) end
  return n
elseif type == 'zset' then
  return call('ZREMRANGEBYRANK', K, 0, limit - 1)
elseif type == 'stream' then
  local len = call('XLEN', K)
  if len > limit then return call('XTRIM', K, 'MAXLEN', '=', len - limit) end
  call('UNLINK', K)
  return len
end
return 0

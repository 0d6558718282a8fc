-- purge: deletes the oldest messages that wait in one key.
--
-- KEYS    a list, a sorted set, or a stream of dead letters
-- ARGV    limit      deleted per call, at most; fewer if they are large
--         end        of a list: the end of the oldest, "right" or "left"
-- Returns how many were deleted
-- Effect  Deletes from that end of a list, the lowest scores of a set, the first
--         entries of a stream.
-- Again   Deletes as many again: a caller without a reply must not send it again.
local K, limit, call = KEYS[1], tonumber(ARGV[1]), redis.call
local type = call('TYPE', K).ok

-- How many of the first ones take 1 MiB together: deleting takes time.
local function small(read)
  local n, bytes = 0, 0
  while n < limit and bytes <= 1048576 do
    local size = read(n)
    if not size then break end
    n, bytes = n + 1, bytes + size
  end
  return n
end

if type == 'list' then
  local n = small(function(i)
    local m = call('LINDEX', K, ARGV[2] == 'left' and i or -1 - i)
    return m and #m
  end)
  if ARGV[2] == 'left' then call('LTRIM', K, n, -1) else call('LTRIM', K, 0, -n - 1) end
  return n
elseif type == 'zset' then
  local n = small(function(i)
    local m = call('ZRANGE', K, i, i)[1]
    return m and #m
  end)
  return n > 0 and call('ZREMRANGEBYRANK', K, 0, n - 1) or 0
elseif type == 'stream' then
  local len, at = call('XLEN', K), '-'
  local n = small(function()
    local e = call('XRANGE', K, at, '+', 'COUNT', 1)[1]
    if not e then return nil end
    local size = 0
    for _, s in ipairs(e[2]) do size = size + #s + 64 end
    at = '(' .. e[1]
    return size
  end)
  if len > n then return call('XTRIM', K, 'MAXLEN', '=', len - n) end
  call('UNLINK', K)
  return len
end
return 0

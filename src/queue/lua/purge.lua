-- purge: deletes the oldest messages that wait in one key.  Of a stream of messages: lets its
-- consumer group pass over them.
--
-- KEYS    a list, a sorted set, or a stream of dead letters; or a stream of messages
-- ARGV    limit      deleted per call, at most; fewer if they are large
--         which      of a list: the end of the oldest, "right" or "left"; of the ids of kind
--                    "unique": "waiting": due, also those put off; "delayed": the rest
--         of a stream of messages
--         group
--         id         of the last entry to be passed over
--         read       number of entries ever added up to this one; "": not known
-- Returns how many were deleted, or are passed over; -1 if the server does not know (before 7.0)
-- Effect  Deletes from that end of a list, the lowest scores of a set, the first
--         entries of a stream.  Or no consumer of the group is given these entries; a group
--         that is further already stays where it is.
-- Again   Deletes as many again: a caller without a reply must not send it again.  A group
--         is there already: returns 0.
--@ sources list stream
local K, call = KEYS[1], redis.call
--@ for list
local limit, which, gone, bytes = tonumber(ARGV[1]), ARGV[2], 0, 0
local type = call('TYPE', K).ok

-- How many of the next ones fit into 1 MiB together: deleting takes time.
local function small(most, read)
  local n = 0
  while n < most and bytes <= 1048576 do
    local size = read(n)
    if not size then break end
    n, bytes = n + 1, bytes + size
  end
  return n
end

if type == 'list' then
  gone = small(limit, function(i)
    local m = call('LINDEX', K, which == 'left' and i or -1 - i)
    return m and #m
  end)
  if which == 'left' then call('LTRIM', K, gone, -1) else call('LTRIM', K, 0, -gone - 1) end
elseif type == 'zset' then
  local t = call('TIME')
  local now = t[1] + t[2] / 1e6
  local s, ms = string.format('%.6f', now), string.format('%.0f', now * 1000)
  local ranges = ({
    waiting = {{'-inf', s}, {'1e10', '(2e10'}, {'1e11', ms}},
    delayed = {{'(' .. s, '(1e10'}, {'2e10', '(1e11'}, {'(' .. ms, '+inf'}}
  })[which] or {{'-inf', '+inf'}}
  for _, range in ipairs(ranges) do
    local count = call('ZCOUNT', K, range[1], range[2])
    local first = call('ZCOUNT', K, '-inf', range[2]) - count
    local n = small(math.min(count, limit - gone), function(i)
      return #call('ZRANGE', K, first + i, first + i)[1]
    end)
    if n > 0 then gone = gone + call('ZREMRANGEBYRANK', K, first, first + n - 1) end
  end
elseif type == 'stream' then
  local len, at = call('XLEN', K), '-'
  gone = small(limit, function()
    local e = call('XRANGE', K, at, '+', 'COUNT', 1)[1]
    if not e then return nil end
    local size = 0
    for _, s in ipairs(e[2]) do size = size + #s + 64 end
    at = '(' .. e[1]
    return size
  end)
  if len > gone then return call('XTRIM', K, 'MAXLEN', '=', len - gone) end
  call('UNLINK', K)
end
return gone
--@ for stream
local group, id = ARGV[1], ARGV[2]
local function is_behind(a, b)
  local ams, aseq = string.match(a, '^(%d+)-(%d+)$')
  local bms, bseq = string.match(b, '^(%d+)-(%d+)$')
  local function cmp(x, y)
    return #x ~= #y and #x - #y or x < y and -1 or x > y and 1 or 0
  end
  local d = cmp(ams, bms)
  return (d ~= 0 and d or cmp(aseq, bseq)) < 0
end

for _, info in ipairs(call('XINFO', 'GROUPS', K)) do
  local g = {}
  for i = 1, #info, 2 do g[info[i]] = info[i + 1] end
  if g.name == group then
    if not is_behind(g['last-delivered-id'], id) then return 0 end
    if ARGV[3] == '' then
      call('XGROUP', 'SETID', K, group, id)
      return -1
    end
    call('XGROUP', 'SETID', K, group, id, 'ENTRIESREAD', ARGV[3])
    return g['entries-read'] and math.max(ARGV[3] - g['entries-read'], 0) or -1
  end
end
return redis.error_reply('NOGROUP the stream has no consumer group ' .. group)
--@ end

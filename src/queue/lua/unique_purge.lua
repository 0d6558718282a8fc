-- unique_purge: deletes ids of kind "unique" that wait, or those that are due later.
--
-- KEYS    Q
-- ARGV    limit      ids deleted per call, at most; fewer if they are large
--         what       "waiting": due, also those put off; "delayed": the rest
-- Returns how many were deleted
-- Effect  Removes them from Q; messages that run or wait for a retry stay.
-- Again   Finds less to do.
local Q = KEYS[1]
local call = redis.call
local t = call('TIME')
local now = t[1] + t[2] / 1e6
local s, ms = string.format('%.6f', now), string.format('%.0f', now * 1000)
local ranges = {{'-inf', s}, {'1e10', '(2e10'}, {'1e11', ms}}
if ARGV[2] == 'delayed' then ranges = {{'(' .. s, '(1e10'}, {'2e10', '(1e11'}, {'(' .. ms, '+inf'}} end

-- Deletes by rank, 1 MiB at most: ids are of any size, and deleting takes time.
local left, bytes = tonumber(ARGV[1]), 0
for _, range in ipairs(ranges) do
  local count, n = math.min(call('ZCOUNT', Q, range[1], range[2]), left), 0
  if count > 0 then
    local low = string.sub(range[1], 1, 1) == '(' and string.sub(range[1], 2) or '(' .. range[1]
    local first = range[1] == '-inf' and 0 or call('ZCOUNT', Q, '-inf', low)
    while n < count and bytes <= 1048576 do
      bytes = bytes + #call('ZRANGE', Q, first + n, first + n)[1]
      n = n + 1
    end
    if n > 0 then left = left - call('ZREMRANGEBYRANK', Q, first, first + n - 1) end
  end
end
return ARGV[1] - left

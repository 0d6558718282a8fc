-- unique_purge: deletes ids of kind "unique" that wait, or that are due later.
--
-- KEYS    Q
-- ARGV    limit      ids deleted per call, at most
--         what       "waiting": due, also those put off; "delayed": the rest
-- Returns how many were deleted
-- Effect  They are in Q no longer; what runs or waits for a retry stays.
-- Again   Finds less to do.
local Q = KEYS[1]
local call = redis.call
local t = call('TIME')
local now = t[1] + t[2] / 1e6
local s, ms = string.format('%.6f', now), string.format('%.0f', now * 1000)
local ranges = {{'-inf', s}, {'1e10', '(2e10'}, {'1e11', ms}}
if ARGV[2] == 'delayed' then ranges = {{'(' .. s, '(1e10'}, {'2e10', '(1e11'}, {'(' .. ms, '+inf'}} end

local left = tonumber(ARGV[1])
for _, range in ipairs(ranges) do
  while left > 0 do
    local ids = call('ZRANGEBYSCORE', Q, range[1], range[2], 'LIMIT', 0, math.min(left, 50))
    if #ids == 0 then break end
    left = left - call('ZREM', Q, unpack(ids))
  end
end
return ARGV[1] - left

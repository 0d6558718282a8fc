-- due: makes messages due that wait for a later time.
--
-- KEYS    QRETRY or QDELAYED
-- ARGV    limit      members moved per call, when none is named
--         member ... the ones that are meant; none: all
-- Returns {moved, more}; more: 1 when some are left to be moved
-- Effect  Their score is now; nothing else is changed, none is added.
-- Again   Safe to repeat: what is due is passed over.
local K = KEYS[1]
local call = redis.call
local t = call('TIME')
local now = string.format('%.6f', t[1] + t[2] / 1e6)

local found, moved = {}, 0
if #ARGV == 1 then
  found = call('ZRANGEBYSCORE', K, '(' .. now, '+inf', 'LIMIT', 0, ARGV[1])
else
  for i = 2, #ARGV do
    local score = call('ZSCORE', K, ARGV[i])
    if score and tonumber(score) > tonumber(now) then found[#found + 1] = ARGV[i] end
  end
end
for _, member in ipairs(found) do
  call('ZADD', K, 'XX', now, member)
  moved = moved + 1
end
return {moved, #ARGV == 1 and moved == tonumber(ARGV[1]) and 1 or 0}

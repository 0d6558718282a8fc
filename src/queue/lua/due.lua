-- due: makes messages due that wait for a later time.
--
-- KEYS    QRETRY or QDELAYED
-- ARGV    member ... the messages
-- Returns how many were moved
-- Effect  Their score is the present time; nothing else is changed, none is added.
-- Again   Safe to repeat: it passes over messages that are due.
local K = KEYS[1]
local call = redis.call
local t = call('TIME')
local now = string.format('%.6f', t[1] + t[2] / 1e6)

-- Removes nothing, but goes first so that maxmemory does not refuse the later commands.
call('ZREM', K, '\0' .. now)
local moved = 0
for _, member in ipairs(ARGV) do
  local score = call('ZSCORE', K, member)
  if score and tonumber(score) > tonumber(now) then
    call('ZADD', K, 'XX', now, member)
    moved = moved + 1
  end
end
return moved

-- drop_retries: deletes messages that wait in QRETRY.
--
-- KEYS    QCONTEXT QRETRY QDELIVERY
-- ARGV    tag ...
-- Returns how many were deleted
-- Effect  They are gone from all keys.  A message whose lease expired while a daemon
--         had it stays: its owner may still settle it.
-- Again   Safe to repeat: it passes over messages that are gone.
local C, R, D = KEYS[1], KEYS[2], KEYS[3]
local call = redis.call
call('HLEN', C)
call('HLEN', D)
call('ZCARD', R)
-- Deletes nothing, but goes first, so that a missing permission shows before the first
-- change.
local t = call('TIME')
call('HDEL', C, '\0' .. t[1] .. t[2])
local n = 0
for _, tag in ipairs(ARGV) do
  local token = string.match(string.sub(call('HGET', D, tag) or '', 1, 300), '^%d+ %d+ (%S+)')
  if call('ZSCORE', R, tag) and string.find(token or '-', '%-$') then
    call('ZREM', R, tag)
    call('HDEL', C, tag)
    call('HDEL', D, tag)
    n = n + 1
  end
end
return n

-- stream_depth: counts the entries that the group has not been given yet.
--
-- KEYS    Q
-- ARGV    group
-- Returns the number.  If the server does not know it (before 7.0, and after some
--         deletions), the script counts entries, up to 1000 or 1 MiB of them.
-- Effect  None: reads only.
-- Again   Reads again.
local Q, group, call = KEYS[1], ARGV[1], redis.call
--@ include stream_new
local last, lag = position()
if not last or last == '0-0' then return call('XLEN', Q) end
if unread() == 0 then return 0 end
if lag then return math.max(lag, 1) end

local n, bytes = 0, 0
while n < 1000 and bytes < 1048576 do
  local e = beyond(last) and call('XRANGE', Q, beyond(last), '+', 'COUNT', 1)[1]
  if not e then break end
  for _, s in ipairs(e[2]) do bytes = bytes + #s + 64 end
  n, last = n + 1, e[1]
end
return n

-- depth: tells for how long the oldest due message has waited, if Redis has a time
-- for it; and of a stream how many entries wait.
--
-- KEYS    QRETRY QDELAYED Q QHELD
-- ARGV    group      of a stream
-- Returns {seconds, least, waiting}
--         seconds: of the longest wait, as text; "0" if none is due; a list has no times.
--         least: 1 if a message may have waited longer: a time before September 2001
--         counts as no time.  waiting: of a stream the entries that the group has not been
--         given; if the server does not know it (before 7.0, and after some deletions), the
--         script counts entries, up to 1000 or 1 MiB of them.  Else -1
-- Effect  None: reads only.
-- Again   Reads again.
--@ sources list zset stream
local R, L, Q, H = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local call = redis.call
local t = call('TIME')
local now = t[1] + t[2] / 1e6
local longest, least, waiting = 0, 0, -1

-- Scores are seconds, or milliseconds from 1e11 on.
local function due(zset, at)
  return call('ZCOUNT', zset, '1e9', string.format('%.6f', at)) +
    call('ZCOUNT', zset, '1e11', string.format('%.0f', at * 1000))
end

-- Uses counts: reading a score by rank would also read the member, a payload of any
-- size.
local function look(zset)
  if call('ZCOUNT', zset, '-inf', '(1e9') > 0 then least = 1 end
  if due(zset, now) == 0 then return end
  local low, high = 0.001, now - 1e9
  for _ = 1, 24 do
    local middle = math.sqrt(low * high)
    if due(zset, now - middle) > 0 then low = middle else high = middle end
  end
  longest = math.max(longest, low)
end

look(R)
look(L)
--@ for list
look(H)
--@ for zset
look(Q)
--@ for stream
local group = ARGV[1]
--@ include stream_new
local last, lag = position()
local function next_entry()
  return beyond(last) and call('XRANGE', Q, beyond(last), '+', 'COUNT', 1)[1]
end

waiting = 0
if not last or last == '0-0' then last, lag = '0-0', call('XLEN', Q) end
local e, bytes = next_entry(), 0
local at = e and tonumber(string.match(e[1], '^%d+')) / 1000
if at and at < 1e9 then least = 1 elseif at then longest = math.max(longest, now - at) end
if e and lag then waiting = math.max(lag, 1) end
while e and not lag and waiting < 1000 and bytes < 1048576 do
  for _, s in ipairs(e[2]) do bytes = bytes + #s + 64 end
  waiting, last = waiting + 1, e[1]
  e = next_entry()
end
--@ end
return {string.format('%.3f', longest), least, waiting}

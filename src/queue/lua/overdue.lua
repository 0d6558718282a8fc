-- overdue: tells for how long the oldest due message has waited, if Redis has a time
-- for it.
--
-- KEYS    QRETRY QDELAYED Q
-- ARGV    source     "list", "ids" or "stream": the type of Q.  A list has no times
--         group      of a stream
-- Returns {seconds, least}: seconds of the longest wait, as text; "0" if none is due.
--         least: 1 if a message may have waited longer: a time before September 2001
--         counts as no time
-- Effect  None: reads only.
-- Again   Reads again.
local R, L, Q = KEYS[1], KEYS[2], KEYS[3]
local source, group = ARGV[1], ARGV[2]
local call = redis.call
local t = call('TIME')
local now = t[1] + t[2] / 1e6
local longest, least = 0, 0
--@ include stream_new

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
if source == 'ids' then look(Q) end
if source == 'stream' then
  local last = position() or '0-0'
  local e = beyond(last) and call('XRANGE', Q, beyond(last), '+', 'COUNT', 1)[1]
  local at = e and tonumber(string.match(e[1], '^%d+')) / 1000
  if at and at < 1e9 then least = 1 elseif at then longest = math.max(longest, now - at) end
end
return {string.format('%.3f', longest), least}

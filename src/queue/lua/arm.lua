-- arm: is there work, and if not, when?  Sent after CLIENT CACHING YES, it also
-- makes Redis say when one of its keys changes.
--
-- KEYS    Q QRETRY QDELAYED QPAUSED
-- ARGV    none
-- Returns {now, waiting, due, delayed, paused, why, ttl}
--         due, delayed: seconds until the first in QRETRY, in QDELAYED (there
--         only if within 15 s); 0 if due, "" if none; paused: 1 or 0; ttl: of the
--         pause in ms, -1 if it has none.
-- Effect  None: reads only.
-- Again   Reads again.
local Q, R, L, P = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local call = redis.call

local t = call('TIME')
local now = t[1] + t[2] / 1e6

local function seconds(at)
  return string.format('%.6f', math.min(math.max(at - now, 0), 1e9))
end

-- QDELAYED's members are payloads of any size: counted, never read.
local function delayed()
  local function due(at)
    return call('ZCOUNT', L, '-inf', string.format('%.6f', at)) +
      call('ZCOUNT', L, '1e11', string.format('%.0f', at * 1000)) > 0
  end
  if call('ZCARD', L) == 0 or not due(now + 15) then return '' end
  local low, high = now, now + 15
  if due(now) then return seconds(now) end
  for _ = 1, 12 do
    local middle = (low + high) / 2
    if due(middle) then high = middle else low = middle end
  end
  return seconds(high)
end

local waiting = call('LLEN', Q)
local first = call('ZRANGE', R, 0, 0, 'WITHSCORES')[2]
local paused, why, ttl = call('EXISTS', P), '', -1
if paused == 1 then
  why = redis.pcall('GET', P)
  why = type(why) == 'string' and string.sub(why, 1, 1000) or ''
  ttl = call('PTTL', P)
end
return {string.format('%.6f', now), waiting, first and seconds(tonumber(first)) or '',
  delayed(), paused, why, ttl}

-- list_pop: takes messages off a plain list, for good.
--
-- KEYS    Q QPAUSED
-- ARGV    side       "right" or "left": the end that they are taken from
--         n          messages wanted, >= 1
--         maxbytes   of messages per call, however large; one is always taken
--         max        a longer message is not sent: its length is
--         deadline   Redis seconds; after it nothing is done ("0": none)
-- Returns {status, now, waiting, then for each message: payload}
--         status "ok", or "late", or "paused" (then: why, its TTL in ms or -1);
--         waiting: how many are left; a message longer than max is an integer.
-- Effect  The messages are nowhere but in the reply.
-- Again   Takes others.  What a call whose reply was lost has taken is lost.
local Q, P = KEYS[1], KEYS[2]
local call = redis.call
local left = ARGV[1] == 'left'
local n, room, max, deadline = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
--@ include pause

local t = call('TIME')
local now = t[1] + t[2] / 1e6
local stamp = string.format('%.6f', now)
local waiting = call('LLEN', Q)
local why, ttl = pause()
if why then return {'paused', stamp, waiting, why, ttl} end
if deadline > 0 and now > deadline then return {'late', stamp, waiting} end

local out, got, bytes = {'ok', stamp, 0}, 0, 0
while got < n and got < waiting and bytes < room do
  local body = left and call('LPOP', Q) or not left and call('RPOP', Q)
  got = got + 1
  bytes = bytes + #body
  out[got + 3] = #body > max and #body or body
end
out[3] = waiting - got
return out

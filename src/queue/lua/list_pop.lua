-- list_pop: takes messages off a plain list, for good.
--
-- KEYS    Q QPAUSED QSTATS
-- ARGV    side       "right" or "left": the end that they are taken from
--         n          messages wanted, >= 1
--         maxbytes   of messages per call, however large; one is always taken
--         max        a longer message is not sent: its length is
--         deadline   Redis seconds; after it nothing is done ("0": none)
--         turn       "newest": a probe from the end where messages come; it is not
--                    counted.  Else "oldest"
-- Returns {status, now, waiting, taken, then for each message: payload}
--         status "ok", or "late", or "paused" (then: why, its TTL in ms or -1);
--         waiting: how many are left; taken: how many the fleet has taken so far, -1
--         where this pop took none or that is not known; a message longer than max is
--         an integer.
-- Effect  The messages are nowhere but in the reply.  QSTATS counts them, last of all.
-- Again   Takes others.  What a call whose reply was lost has taken is lost.
local Q, P, S = KEYS[1], KEYS[2], KEYS[3]
local call = redis.call
local left = ARGV[1] == 'left'
local n, room, max, deadline = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
--@ include pause

local t = call('TIME')
local now = t[1] + t[2] / 1e6
local stamp = string.format('%.6f', now)
local waiting = call('LLEN', Q)
local why, ttl = pause()
if why then return {'paused', stamp, waiting, -1, why, ttl} end
if deadline > 0 and now > deadline then return {'late', stamp, waiting, -1} end

local out, got, bytes = {'ok', stamp, 0, -1}, 0, 0
while got < n and got < waiting and bytes < room do
  local body = left and call('LPOP', Q) or not left and call('RPOP', Q)
  got = got + 1
  bytes = bytes + #body
  out[got + 4] = #body > max and #body or body
end
out[3] = waiting - got
if got > 0 and ARGV[6] ~= 'newest' then
  local taken = redis.pcall('HINCRBY', S, 'taken', got)
  if type(taken) == 'number' then out[4] = taken end
end
return out

-- list_pop: takes messages from a plain list; Redis keeps nothing of them.
--
-- KEYS    Q QPAUSED QSTATS
-- ARGV    side       "right" or "left": the end to take them from
--         n          messages wanted; 0: only counts, and the rest of ARGV does not matter
--         maxbytes   of messages per call, however large; one is always taken
--         max        of a longer message only the length is sent
--         deadline   Redis seconds; after it nothing is done ("0": none)
--         turn       "newest": a probe from the end where messages come; it is not
--                    counted.  Else "oldest"
-- Returns {status, now, waiting, taken, then for each message: payload}
--         status "ok", or "late", or "paused" (then: why, its TTL in ms or -1);
--         waiting: how many are left; taken: how many the fleet has taken so far, -1
--         if this pop took none of those that it wanted, or that is not known; a message
--         longer than max is an integer, its length.
-- Effect  Only the reply has the messages.  QSTATS counts them, last of all.
-- Again   Takes others.  If a reply is lost, its messages are lost.
local Q, P, S = KEYS[1], KEYS[2], KEYS[3]
local call = redis.call
local left = ARGV[1] == 'left'
local n, room, max, deadline = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
--@ include pause
--@ include taken

local t = call('TIME')
local now = t[1] + t[2] / 1e6
local stamp = string.format('%.6f', now)
local waiting = call('LLEN', Q)
if n == 0 then return {'ok', stamp, waiting, taken_so_far(S)} end
local why, ttl = pause()
if why then return {'paused', stamp, waiting, -1, why, ttl} end
if deadline > 0 and now > deadline then return {'late', stamp, waiting, -1} end

local out, got, bytes = {'ok', stamp, 0, -1}, 0, 0
while got < n and got < waiting and bytes < room do
  local body = left and call('LPOP', Q) or
      not left and call('RPOP', Q)
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

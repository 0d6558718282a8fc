-- drop: deletes messages that wait in QRETRY or QHELD, or makes dead letters of them.
--
-- KEYS    QCONTEXT QRETRY QDELIVERY QDEAD Q QHELD QGROUP QORDER; with "tell" a list
-- ARGV    mode       "drop" or "bury": a dead letter, reason "buried"
--         dead_max   letters to keep, "0": all
--         host       for the letter
--         error      for the letter: who did it, and why
--         group      of consumers, if Q is a stream
--         tell       see part/letter.lua; "": nobody
--         tag ...    to bury, one: it is of any size
-- Returns {gone, held}: held: how many stay because their lease ended while a daemon had
--         them in flight, which may still settle them; or, to be buried, because they were
--         cancelled: the next pop ends them as that says
-- Effect  They are gone from all keys; a letter is written before.  The next messages of their
--         groups are due.
-- Again   Safe to repeat: it passes over messages that are gone.
local C, R, D, X, Q = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local H, G, O = KEYS[6], KEYS[7], KEYS[8]
local call = redis.call
local bury, dead_max, host, group, tell = ARGV[1] == 'bury', ARGV[2], ARGV[3], ARGV[5], ARGV[6]
--@ include full
local crammed = bury and is_full(R)
-- Fields and tags of the message go.
local function frees(message) return 500 + #message / 32 end
--@ include mark
--@ include letter
--@ include stream_entry

local leave = call('TYPE', Q).ok == 'stream' and acknowledge or function() end
call('HLEN', C)
call('HLEN', D)
-- These commands remove nothing.  They go first so that maxmemory refuses none of the
-- later ones, and so that a missing permission shows before the first change.
local t = call('TIME')
local stamp, nobody = string.format('%.6f', t[1] + t[2] / 1e6), '\0' .. t[1] .. t[2]
--@ include groups
--@ include end_waiting
permitted()
call('ZREM', R, nobody)
call('HDEL', C, nobody)
leave({})
local gone, held = 0, 0
for i = 7, #ARGV do
  local tag = ARGV[i]
  local value = string.sub(call('HGET', D, tag) or '', 1, 300)
  local token = string.match(value, '^%d+ %d+ (%S+) %S+ %d+$')
  local aside = call('ZSCORE', H, tag)
  local body = (aside or call('ZSCORE', R, tag)) and
      (not bury or call('HGET', C, tag))
  if body and not string.find(token or '-', bury and '^%-$' or '%-$') then
    held = held + 1
  elseif body then
    local why = end_waiting(tag, value, aside, 'buried', bury and body, ARGV[4])
    if why then return redis.error_reply(why) end
    gone = gone + 1
  end
end
return {gone, held}

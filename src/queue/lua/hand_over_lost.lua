-- hand_over_lost: pushes the messages that a delivery hands over, after Redis has lost
-- the delivery.
--
-- KEYS    QBACKUP QCONTEXT QRETRY QDELIVERY
--         then the lists that are pushed to
-- ARGV    tag
--         payload    "": not known
--         call prev  as rescue
--         N, then N times TARGET COUNT MESSAGE ..., as hand_over
-- Returns "ok", also if it was done before; "there": a live message has this tag and
--         payload, its own delivery will hand over, so nothing is pushed
-- Effect  Pushes all messages or none, and notes that Redis has seen this call.
-- Again   Does nothing if Redis has seen the first call.
local B, C, R, D = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local call, targets = redis.call, 4
local tag, payload = ARGV[1], ARGV[2]
--@ include seen
--@ include pushes

local t = call('TIME')
local now = string.format('%.6f', t[1] + t[2] / 1e6)
local instance, number = string.match(ARGV[3], '^(.*)%.(%d+)$')
local p = pops_of(instance)
number = tonumber(number)
if p and p[2] == number then return 'ok' end
if (call('ZSCORE', B, tag) or call('ZSCORE', R, tag)) and
    (payload == '' or call('HGET', C, tag) == payload) then
  return 'there'
end
-- Changes nothing, but Redis refuses it at maxmemory.  It also shows whether the note
-- may be written; without the note the messages could be pushed twice.
local field, value = set_pops(instance, p and p[1] or 0, p and p[2] or 0, now)
call('HSET', D, field, value)
if not p then call('HDEL', D, field) end
repeat
  local why = gather(5)
  if why then return redis.error_reply('ERR ' .. why) end
until push_all()
local from = p and p[2] >= tonumber(ARGV[4]) and p[1] or number
call('HSET', D, set_pops(instance, from, number, now))
return 'ok'

-- rescue: writes a message whose delivery Redis has lost again, from the daemon's copy.
--
-- KEYS    QBACKUP QCONTEXT QRETRY QDELIVERY QDEAD
-- ARGV    op         "retry", "return": to QRETRY; "dead": to QDEAD; "check": look only
--         tag
--         other      the tag to use if another message has that one
--         idlen      length of the id in either tag
--         attempts   after this delivery
--         crashes
--         delay      seconds
--         payload
--         dead_max host reason status error answer     for "dead"
--         call prev  as pop: a rescue has a number as pops have; its second sending
--                    has the same, and no other call of the daemon is sent before
-- Returns "ok", also if it was done before; "there": a live message has this tag and
--         payload, and nothing is written; "deferred TEXT": the letter cannot be written,
--         due in 60 s; "other" (check): the live message with this tag has another
--         payload, or there is none
-- Effect  The message is in QCONTEXT and QDELIVERY before QRETRY names it.  Last of all
--         it notes that Redis has seen this call.
-- Again   Does nothing if Redis has seen the first call.
local B, C, R, D, X = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local call = redis.call
local op, tag, idlen, payload = ARGV[1], ARGV[2], tonumber(ARGV[4]), ARGV[8]
local dead_max, host = ARGV[9], ARGV[10]
--@ include letter
--@ include seen

local t = call('TIME')
local now = t[1] + t[2] / 1e6
call('HLEN', C)
call('HLEN', D)
local instance, number = string.match(ARGV[15] or '', '^(.*)%.(%d+)$')
local p = instance and pops_of(instance)
number = tonumber(number)
local again = p and p[2] == number
for i = 2, 3 do
  tag = ARGV[i]
  if not (call('ZSCORE', B, tag) or call('ZSCORE', R, tag)) then break end
  if i == 3 or call('HSTRLEN', C, tag) == #payload and call('HGET', C, tag) == payload then
    if again then return op == 'dead' and 'deferred' or 'ok' end
    return 'there'
  end
  if op == 'check' then return 'other' end
end
if op == 'check' then return 'other' end
if again then return 'ok' end
-- Writes nothing, but goes first so that maxmemory does not refuse the later commands.
call('ZREMRANGEBYRANK', B, 1, 0)
-- Changes nothing, but shows now whether QRETRY may be written.
call('ZADD', R, 'XX', 0, '\0' .. now)
local delay, answer = tonumber(ARGV[7]), 'ok'
local function note()
  local from = p and p[2] >= tonumber(ARGV[16]) and p[1] or number
  call('HSET', D, set_pops(instance, from, number, string.format('%.6f', now)))
end
if op == 'dead' then
  local id = string.sub(tag, 1, idlen)
  -- If Redis refused the note after the letter was written, a second letter would
  -- follow.  So test the note here, where nothing has changed.
  local field, value = set_pops(instance, p and p[1] or 0, p and p[2] or 0, string.format('%.6f', now))
  call('HSET', D, field, value)
  if not p then call('HDEL', D, field) end
  local e = redis.pcall(unpack(letter(id, payload, ARGV[11], ARGV[5], ARGV[12], ARGV[13],
    ARGV[14])))
  if not (type(e) == 'table' and e.err) then
    note()
    return 'ok'
  end
  delay, answer = 60, deferred(e)
end
call('HSET', C, tag, payload)
call('HSET', D, tag, string.format('%d %d - %.6f %d', tonumber(ARGV[5]), tonumber(ARGV[6]), now, idlen))
call('ZADD', R, string.format('%.6f', now + delay), tag)
note()
return answer

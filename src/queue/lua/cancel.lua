-- cancel: ends a message that was delivered before, that is delayed in QRETRY, or held in QHELD.
--
-- KEYS    QBACKUP QCONTEXT QRETRY QDELIVERY QDEAD Q QHELD QGROUP QORDER; with "tell" a list
-- ARGV    mode       "drop": it is deleted; "dead": it becomes a dead letter, reason
--                    "cancelled"; "retry": its owner ends its run, and it fails; "look":
--                    nothing is changed
--         dead_max   letters to keep, "0": all
--         host       for the letter
--         who        did it, for the letter and for the owner's log; up to 64 bytes of
--                    letters, digits, "@", ".", "_" and "-", or ""
--         tag
--         group      of consumers, if Q is a stream
--         tell       see part/letter.lua; "": nobody
-- Returns {state, token}
--         state "waiting": nobody had it, and it is gone now (mode "retry": nothing is changed);
--         "held": the same, from QHELD;
--         "running": its owner will end the handler, then settle it; "expired": the same, or if
--         the owner is gone, the next pop settles it ("retry": delivers it); "foreign": another
--         consumer has it, and nothing is changed; "unknown": it is in no zset
--         token: of the owner, else ""
-- Effect  A message that has an owner gets a mark before its token (see part/mark.lua),
--         and stays where it is until its handler has ended.  Any other one is gone at once;
--         its letter is written before.  The next message of its group is due.
-- Again   Marks it again, with the later mode.  Otherwise the second time it is unknown.
local B, C, R, D, X, Q = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local H, G, O = KEYS[7], KEYS[8], KEYS[9]
local call = redis.call
local mode, dead_max, host, tag, group, tell = ARGV[1], ARGV[2], ARGV[3], ARGV[5], ARGV[6], ARGV[7]
--@ include full
local crammed = mode == 'dead' and is_full(R)
-- Fields and tags of the message go.
local function frees(message) return 500 + #message / 32 end
--@ include mark
--@ include letter
--@ include stream_entry

local leave = call('TYPE', Q).ok == 'stream' and acknowledge or function() end

local value = string.sub(call('HGET', D, tag) or '', 1, 300)
local in_backup, in_retry = call('ZSCORE', B, tag), call('ZSCORE', R, tag)
local held = not (in_backup or in_retry) and call('ZSCORE', H, tag)
call('HLEN', C)
if not (in_backup or in_retry or held) then return {'unknown', ''} end
local counts, token, rest = string.match(value, '^(%d+ %d+ )(%S+)( %S+ %d+)$')
local bare = unmark(token)
if in_backup and not token then return {'foreign', ''} end
-- These commands remove nothing.  They go first so that maxmemory refuses none of the
-- later ones, and so that a missing permission shows before the first change.
local t = call('TIME')
local stamp, nobody = string.format('%.6f', t[1] + t[2] / 1e6), '\0' .. t[1] .. t[2]
--@ include groups
--@ include end_waiting
if mode ~= 'look' then
  permitted()
  call('HDEL', C, nobody)
  call('HDEL', D, nobody)
  call('ZREM', R, nobody)
  leave({})
end
if in_backup or (bare or '-') ~= '-' then
  local front = '!' .. mode .. ':' .. (ARGV[4] ~= '' and ARGV[4] .. ':' or '')
  if mode ~= 'look' then call('HSET', D, tag, counts .. front .. bare .. rest) end
  return {in_backup and 'running' or 'expired', bare}
end
local state = held and 'held' or 'waiting'
if mode == 'look' or mode == 'retry' then return {state, ''} end
local body = mode == 'dead' and call('HGET', C, tag)
local by = ARGV[4] ~= '' and 'cancelled by ' .. ARGV[4] or ''
local why = end_waiting(tag, value, held, 'cancelled', body, by)
return why and redis.error_reply(why) or {state, ''}

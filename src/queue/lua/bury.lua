-- bury: makes a dead letter of a message that waits for a retry.
--
-- KEYS    QCONTEXT QRETRY QDELIVERY QDEAD
-- ARGV    tag
--         dead_max   letters to keep, "0": all
--         host       for the letter
--         error      for the letter: who did it, and why
-- Returns "ok", "unknown" (it is not in QRETRY), or "held" (its lease ended
--         while a daemon had it in flight, which may still settle it)
-- Effect  The letter is written before the message is deleted.
-- Again   Safe to repeat: the second time it is unknown.
local C, R, D, X = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local call = redis.call
local tag, dead_max, host = ARGV[1], ARGV[2], ARGV[3]
--@ include letter

call('HLEN', C)
local value = call('HGET', D, tag)
if not call('ZSCORE', R, tag) then return 'unknown' end
local body = call('HGET', C, tag)
local attempts, token, idlen = string.match(string.sub(value or '', 1, 300), '^(%d+) %d+ (%S+) %S+ (%d+)$')
if not body then return 'unknown' end
if not string.find(token or '-', '%-$') then return 'held' end
-- These commands remove nothing.  They go first so that maxmemory refuses none of the
-- later ones, and so that a missing permission shows before the first change.
local t = call('TIME')
local nobody = '\0' .. t[1] .. t[2]
call('ZREM', R, nobody)
call('HDEL', C, nobody)
local id = string.sub(tag, 1, tonumber(idlen) or #tag)
call('XADD', unpack(letter(id, body, 'buried', attempts or 0, '', ARGV[4], ''), 2))
call('ZREM', R, tag)
call('HDEL', C, tag)
call('HDEL', D, tag)
return 'ok'

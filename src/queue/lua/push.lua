-- push: adds a message that is due later.  (A plain LPUSH adds one that is due now.)
--
-- KEYS    QBACKUP QCONTEXT QRETRY QDELIVERY
-- ARGV    tag        unique per push: ID#SOMETHING, or ~SOMETHING
--         idlen      length of the id in the tag
--         at         Redis seconds, or "" for
--         delay      seconds from now
--         payload
-- Returns 1, or 0 if the tag is there already
-- Effect  The message is in QCONTEXT and QDELIVERY before QRETRY names it.  At
--         maxmemory Redis refuses it like any producer's command.
-- Again   Nothing while the tag lives.
local B, C, R, D = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local call = redis.call
local tag = ARGV[1]

local t = call('TIME')
local now = t[1] + t[2] / 1e6
local at = tonumber(ARGV[3]) or now + tonumber(ARGV[4])
call('HLEN', C)
call('HLEN', D)
if call('ZSCORE', B, tag) or call('ZSCORE', R, tag) then return 0 end
-- Changes nothing, but shows now whether QRETRY may be written.
call('ZADD', R, 'XX', 0, '\0' .. now)
call('HSET', C, tag, ARGV[5])
call('HSET', D, tag, string.format('0 0 - %.6f %d', now, tonumber(ARGV[2])))
call('ZADD', R, string.format('%.6f', at), tag)
return 1

-- push: adds messages that are due later; of a zset also such that are due now.  (A plain
-- LPUSH adds one to a list that is due now.)
--
-- KEYS    QBACKUP QCONTEXT QRETRY QDELIVERY; of a zset Q
-- ARGV    at         Redis seconds, or "" for
--         delay      seconds from now
--         then       tag, unique per push: ID#SOMETHING, or ~SOMETHING; idlen, the length of
--                    the id in it; payload.  Of a zset: id ...
-- Returns how many are new: 0 if the tag is there already; the other ids wait already
-- Effect  The message is in QCONTEXT and QDELIVERY before QRETRY names it.  An id is due at
--         that time, or earlier if it was, even if it was put off while it runs.  At
--         maxmemory Redis refuses it like any producer's command.
-- Again   Nothing while the tag lives; or makes an id due earlier whose time was set since.
--@ sources list zset
local call = redis.call
local t = call('TIME')
local now = t[1] + t[2] / 1e6
local at = string.format('%.6f', tonumber(ARGV[1]) or now + tonumber(ARGV[2]))
--@ for list
local B, C, R, D = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local tag = ARGV[3]
call('HLEN', C)
call('HLEN', D)
if call('ZSCORE', B, tag) or call('ZSCORE', R, tag) then return 0 end
-- Changes nothing, but shows now whether QRETRY may be written.
call('ZADD', R, 'XX', 0, '\0' .. now)
call('HSET', C, tag, ARGV[5])
call('HSET', D, tag, string.format('0 0 - %.6f %d', now, tonumber(ARGV[4])))
return call('ZADD', R, at, tag)
--@ for zset
local Q, C = KEYS[1], nil
--@ include unique
local added = 0
for i = 3, #ARGV do
  put_back(ARGV[i])
  added = added + call('ZADD', Q, 'LT', at, ARGV[i])
end
return added
--@ end

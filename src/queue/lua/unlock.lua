-- unlock: releases a lock, or breaks that of a known holder.
--
-- KEYS    Lock:NAME
-- ARGV    holder     the token, or the beginning of the value: 512 bytes at most
-- Returns 1, or 0: the lock is not that holder's
-- Effect  The key is deleted.
-- Again   Does nothing: the token is no longer there.
local K = KEYS[1]
local call = redis.call

local holder = call('GETRANGE', K, 0, 511)
if call('EXISTS', K) == 0 then return 0 end
if holder ~= ARGV[1] and string.match(holder, '^%S+') ~= ARGV[1] then return 0 end
return call('DEL', K)

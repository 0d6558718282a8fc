-- lock_renew: the holder of a lock keeps it for another ttl.
--
-- KEYS    Lock:NAME
-- ARGV    token      of the holder
--         ttl        ms
-- Returns {ours, holder, left}
--         ours: 1, and no more; or 0: another one has it, as lock; "" and -2: nobody
-- Effect  The key's time to live; nothing where it is not the holder's.
-- Again   As before.
local K = KEYS[1]
local call = redis.call

local left = call('PTTL', K)
local holder = call('GETRANGE', K, 0, 511)
if string.match(holder, '^%S+') ~= ARGV[1] then return {0, holder, left} end
call('PEXPIRE', K, ARGV[2])
return {1}

-- lock_renew: lets the holder of a lock keep it for another ttl.
--
-- KEYS    Lock:NAME
-- ARGV    token      of the holder
--         ttl        ms
-- Returns {ours, holder, left}
--         ours: 1 and no more elements; or 0: another holder, as in lock; "" and -2:
--         nobody holds it
-- Effect  Sets the key's time to live if the lock is the holder's.
-- Again   Sets it again.
local K = KEYS[1]
local call = redis.call

local left = call('PTTL', K)
local holder = call('GETRANGE', K, 0, 511)
if string.match(holder, '^%S+') ~= ARGV[1] then return {0, holder, left} end
call('PEXPIRE', K, ARGV[2])
return {1}

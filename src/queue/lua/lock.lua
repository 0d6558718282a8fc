-- lock: takes a lock, or says who has it.
--
-- KEYS    Lock:NAME
-- ARGV    token      random, one word
--         who        HOST PID, for people
--         ttl        ms
-- Returns {ours, holder, left}
--         ours: 1 and no more elements; or 0, then the value, cut, and its ttl in ms
-- Effect  The value is token, who, and Redis' time.  A key without a ttl, whose
--         holder died between SETNX and EXPIRE, gets this one.
-- Again   The holder gets it again, for a whole ttl.
local K, token = KEYS[1], ARGV[1]
local call = redis.call

local left = call('PTTL', K)
local holder = call('GETRANGE', K, 0, 511)
if left == -2 then
  local t = call('TIME')
  call('SET', K, string.format('%s %s %d.%06d', token, ARGV[2], t[1], t[2]), 'PX', ARGV[3])
  return {1}
end
if string.match(holder, '^%S+') == token then
  call('PEXPIRE', K, ARGV[3])
  return {1}
end
if left == -1 then call('PEXPIRE', K, ARGV[3]) end
return {0, holder, left}

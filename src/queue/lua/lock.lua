-- lock: takes a lock, lets its holder keep it, or gives it back.
--
-- KEYS    Lock:NAME
-- ARGV    token      of the holder: random, one word; to break a lock, the beginning of its
--                    value: 512 bytes at most
--         ttl        ms; "0": the lock is given back; "break": whoever has this value loses it
--         who        HOST PID, for people: takes the lock if nobody has it; none: does not
-- Returns {ours, holder, left}
--         ours: 1 and no more elements; or 0, then the value, cut, and its ttl in ms; "" and
--         -2: nobody has it
-- Effect  The value is token, who, and Redis' time.  A key without a ttl, whose
--         holder died between SETNX and EXPIRE, gets this one from whoever would take it.
-- Again   The holder gets it again, for a whole ttl.  A lock that was given back is no longer
--         the holder's.
local K, call, token, ttl, who = KEYS[1], redis.call, ARGV[1], ARGV[2], ARGV[3]

local left = call('PTTL', K)
local holder = call('GETRANGE', K, 0, 511)
if left == -2 and who then
  local t = call('TIME')
  call('SET', K, string.format('%s %s %d.%06d', token, who, t[1], t[2]), 'PX', ttl)
  return {1}
end
local has = ttl == 'break' and holder or string.match(holder, '^%S+')
if left ~= -2 and has == token then
  if ttl == '0' or ttl == 'break' then
    call('DEL', K)
  else
    call('PEXPIRE', K, ttl)
  end
  return {1}
end
if left == -1 and who then call('PEXPIRE', K, ttl) end
return {0, holder, left}

-- schedule: pushes the message of a schedule's tick, once in the fleet.
--
-- KEYS    Q QSCHEDULE
-- ARGV    name       of the schedule
--         tick       the nominal second that is due
--         period     seconds to the next one
--         grace      how late it may still run; -1: always
--         how        LPUSH, RPUSH, ZADD or XADD
--         message
-- Returns {what, now, ran}: pushed; done: it was pushed before; new: this schedule was not
--         known yet; missed: too late; early: not due by Redis' clock.  ran: 1 if the
--         schedule has run before
-- Effect  pushed: the message is in Q, and the tick in QSCHEDULE.  ZADD: the id is
--         due at the tick, or earlier.  new: the tick is in QSCHEDULE, and a
--         field "\1" .. name, which stays there until the schedule runs.
--         A tick in QSCHEDULE that lies in the future was left by a wrong clock:
--         it is replaced.
-- Again   Answers done.
local Q, S = KEYS[1], KEYS[2]
local name, tick, how, message = ARGV[1], tonumber(ARGV[2]), ARGV[5], ARGV[6]
local call = redis.call

local t = call('TIME')
local now = t[1] + t[2] / 1e6
local ran = 0
local function answer(what) return {what, string.format('%.6f', now), ran} end

-- Reads first, so that a wrong type or a missing permission ends the script here.
local old, fresh = unpack(call('HMGET', S, name, '\1' .. name))
local score
if how == 'ZADD' then
  score = call('ZSCORE', Q, message)
elseif how == 'XADD' then
  call('XLEN', Q)
else
  call('LLEN', Q)
end

local last = tonumber(old or '')
if last and not fresh then ran = 1 end
if tick > now + 1 then return answer('early') end
if not last then
  call('HSET', S, name, ARGV[2], '\1' .. name, '')
  return answer('new')
end
local future = last > now + tonumber(ARGV[3])
if tick <= last and not future then return answer('done') end
if tonumber(ARGV[4]) >= 0 and now - tick > tonumber(ARGV[4]) then
  if future then call('HSET', S, name, ARGV[2]) end
  return answer('missed')
end

-- If the tick cannot be recorded, the message must not be pushed.  Write the old value
-- first: that changes nothing, and Redis refuses it if it would refuse the new one.
call('HSET', S, name, old)
if how == 'ZADD' then
  if not score or tonumber(score) > tick then call('ZADD', Q, ARGV[2], message) end
elseif how == 'XADD' then
  call('XADD', Q, '*', 'message', message)
elseif how == 'LPUSH' then
  call('LPUSH', Q, message)
elseif how == 'RPUSH' then
  call('RPUSH', Q, message)
else
  call('PUBLISH', Q, message)
end
call('HSET', S, name, ARGV[2])
redis.pcall('HDEL', S, '\1' .. name)
return answer('pushed')

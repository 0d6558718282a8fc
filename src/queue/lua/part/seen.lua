-- seen: tells which pops of a daemon's queue this Redis has seen.
-- Needs   D: QDELIVERY
-- Gives   pops_of(instance): {first, last, time}, or false if there is no such field;
--         set_pops(instance, first, last, time): the words that HSET writes;
--         seen(token): true if Redis has seen the pop that made this token
--
-- While a daemon has messages in flight, QDELIVERY has a field "\1INSTANCE" beside its
-- tags (no tag has a control character in front): "FIRST LAST TIME NEVER".  INSTANCE is
-- the daemon's with a number of the queue: while a reload drains a queue, two queues of
-- one daemon may have one key, and each has calls and messages of its own.  Redis has
-- seen each of the queue's calls from FIRST to LAST that has taken messages.  A call
-- carries the number of the last one that is known to have taken messages (prev).  If
-- the call finds that LAST is prev or later, nothing is missing: FIRST stays.
-- Otherwise Redis has lost data in between, and FIRST becomes this call.  Redis loses
-- only the latest of its writes, so if it has a later call of the queue, it has prev,
-- too.
--
-- NEVER is always 9999999999.  A daemon of the first version may serve the queue at the
-- same time.  Its tick deletes each field of QDELIVERY whose name is in neither zset
-- and whose fourth word is a time in the past.
local pops = {}
local function pops_of(instance)
  if pops[instance] == nil then
    local first, last, time = string.match(string.sub(redis.call('HGET', D, '\1' .. instance) or '', 1, 100), '^(%d+) (%d+) (%d+%.?%d*) %d+$')
    pops[instance] = first and {tonumber(first), tonumber(last), tonumber(time)} or false
  end
  return pops[instance]
end

local function set_pops(instance, first, last, time)
  return '\1' .. instance, string.format('%.0f %.0f %s 9999999999', first, last, time)
end

local function seen(token)
  local instance, number = string.match(token, '^(.*)%.(%d+)%.%d+$')
  local p = instance and pops_of(instance)
  number = tonumber(number)
  return p and p[1] <= number and number <= p[2] or false
end

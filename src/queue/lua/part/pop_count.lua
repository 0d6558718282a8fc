-- pop_count: adds the number of messages taken from the list to the fleet's total, for
-- the curve of arrivals (src/policy/arrivals.h).
-- Needs   pop_list; S: QSTATS
-- Messages that a probe takes at the newest end are not counted, as if they had not arrived.
if counted > 0 then
  local taken = redis.pcall('HINCRBY', S, 'taken', counted)
  if type(taken) == 'number' then out[7] = taken end
end

-- pop_count: adds what was taken from the list to the total of the fleet, for the curve
-- of arrivals (src/policy/arrivals.h).
-- Needs   pop_list; S: QSTATS
-- What a probe takes at the newest end is not counted: it is as if it had not arrived.
if counted > 0 then
  local taken = redis.pcall('HINCRBY', S, 'taken', counted)
  if type(taken) == 'number' then out[7] = taken end
end

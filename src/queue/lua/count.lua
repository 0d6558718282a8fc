-- count: adds to the totals of the fleet.
--
-- KEYS    QSTATS
-- ARGV    for each counter: its name, and what to add
-- Returns "ok"
-- Effect  The fields of QSTATS are larger.  A field that is no number is left out.
-- Again   Adds again: the caller must not send it again if it may have acted.
for i = 1, #ARGV, 2 do
  redis.pcall('HINCRBY', KEYS[1], ARGV[i], ARGV[i + 1])
end
return 'ok'

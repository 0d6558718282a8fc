-- count: adds to the totals of the fleet.
--
-- KEYS    QSTATS
-- ARGV    for each counter: its name, and what to add
-- Returns "ok"; an error if Redis refuses the first one: then nothing was added
-- Effect  The fields of QSTATS are larger.  A field that is no number is left out.
-- Again   Adds again: the caller must not send it again if it may have acted.
for i = 1, #ARGV, 2 do
  local r = redis.pcall('HINCRBY', KEYS[1], ARGV[i], ARGV[i + 1])
  if i == 1 and type(r) == 'table' and not string.find(r.err, 'integer', 1, true) then
    -- Raises it, with the line: Redis before 7.2 names the command by it.
    redis.call('HINCRBY', KEYS[1], ARGV[i], ARGV[i + 1])
  end
end
return 'ok'

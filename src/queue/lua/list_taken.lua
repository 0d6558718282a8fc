-- list_taken: how many messages wait in a list, and how many the fleet has taken from it; for
-- the kind that has no tick.
--
-- KEYS    Q QSTATS
-- ARGV    none
-- Returns {waiting, taken}: taken is -1 where it is not known
-- Effect  None: reads only.
-- Again   Reads again.
--@ include taken
return {redis.call('LLEN', KEYS[1]), taken_so_far(KEYS[2])}

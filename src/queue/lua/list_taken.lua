-- list_taken: counts the messages that wait in a list, and those that the fleet has taken
-- from it; for the kind without a tick.
--
-- KEYS    Q QSTATS
-- ARGV    none
-- Returns {waiting, taken}: taken is -1 if it is not known
-- Effect  None: reads only.
-- Again   Reads again.
--@ include taken
return {redis.call('LLEN', KEYS[1]), taken_so_far(KEYS[2])}

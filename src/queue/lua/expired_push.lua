-- expired_push: keys have expired; whoever says it first pushes their names.
--
-- KEYS    Q QBACKUP, then a lock key for each name
-- ARGV    ms         how long a name is then shut out
--         owner      of the locks, for people
--         names      of the keys that have expired
-- Returns how many were pushed
-- Effect  A name is in Q before its lock is there, so an error in the middle may
--         leave it twice, never nowhere.  Goes on at maxmemory: an event comes
--         once.
-- Again   Pushes nothing while the lock is there; later it would push again.
local Q, B = KEYS[1], KEYS[2]
local call = redis.call

call('LLEN', Q)
call('ZCARD', B)
for i = 3, #KEYS do call('EXISTS', KEYS[i]) end
call('ZREMRANGEBYRANK', B, 1, 0)
local pushed = 0
for i = 3, #KEYS do
  if call('EXISTS', KEYS[i]) == 0 then
    -- Sets nothing, as there is none, and tells now whether the lock may be set.
    call('SET', KEYS[i], ARGV[2], 'XX', 'PX', ARGV[1])
    call('LPUSH', Q, ARGV[i])
    call('SET', KEYS[i], ARGV[2], 'PX', ARGV[1])
    pushed = pushed + 1
  end
end
return pushed

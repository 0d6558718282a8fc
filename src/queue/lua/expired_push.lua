-- expired_push: pushes the names of keys that have expired; of all daemons only the
-- first pushes each name.
--
-- KEYS    Q QBACKUP, then a lock key for each name
-- ARGV    ms         how long each name is locked afterwards
--         owner      of the locks, for people
--         names      of the keys that have expired
-- Returns how many were pushed
-- Effect  A name is in Q before its lock is there, so an error in the middle may
--         leave it twice, never nowhere.  It also works at maxmemory, because an event
--         comes only once.
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
    -- Sets nothing, since there is no lock, but shows a missing permission now.
    call('SET', KEYS[i], ARGV[2], 'XX', 'PX', ARGV[1])
    call('LPUSH', Q, ARGV[i])
    call('SET', KEYS[i], ARGV[2], 'PX', ARGV[1])
    pushed = pushed + 1
  end
end
return pushed

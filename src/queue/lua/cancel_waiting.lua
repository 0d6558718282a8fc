-- cancel_waiting: ends a message that waits for its first delivery.
--
-- KEYS    Q or QDELAYED; QDEAD; with "tell" a list
-- ARGV    what       "list" or "zset": what the first key is; "left": a list whose left end is
--                    the oldest
--         mode       "drop", "dead" or "look", as cancel has it
--         dead_max host error    as cancel
--         scan       of a list: entries that are looked at, from the next one on
--         id         for the letter
--         message    the whole of it
--         tell       see part/letter.lua; "": nobody
-- Returns "ok"; "gone": it is not there, or not among these entries
-- Effect  One entry that is this message is removed: of a list the next one.  A letter is
--         written before.
-- Again   Of a list it removes another entry that is equal: the caller must not send it
--         again.
local K, X = KEYS[1], KEYS[2]
local call = redis.call
local list, mode, dead_max, host = ARGV[1] ~= 'zset', ARGV[2], ARGV[3], ARGV[4]
local tell, message, first = ARGV[9], ARGV[8], ARGV[1] == 'left' and 1 or -1
--@ include full
local known, crammed = pcall(is_full, K)
crammed = known and crammed
local function frees(message) return #message / 32 end
--@ include letter

local there
if list then
  there = call('LPOS', K, message, 'RANK', first, 'MAXLEN', ARGV[6])
else
  there = call('ZSCORE', K, message)
end
if not there then return 'gone' end
if mode == 'look' then return 'ok' end
-- Ends here if QDEAD is not a stream: LREM would search the whole of a list.
if mode == 'dead' then call('XLEN', X) end
-- These commands change nothing, and go first so that maxmemory refuses none of the
-- later ones.
if list then
  call('LTRIM', K, 0, -1)
else
  call('ZREM', K, '\0' .. message)
end
-- Tests the permission for LREM: QDEAD is a stream, so it can only fail, by its type or
-- by the ACL.
local e = mode == 'dead' and list and redis.pcall('LREM', X, 1, '\0nobody')
if type(e) == 'table' and e.err and not string.find(e.err, 'WRONGTYPE', 1, true) then
  return redis.error_reply('LREM: ' .. e.err)
end
if mode == 'dead' then
  local why = letter(ARGV[7], message, 'cancelled', 0, '', ARGV[5], '')
  if why then return redis.error_reply(why) end
end
if list then
  call('LREM', K, first, message)
else
  call('ZREM', K, message)
end
return 'ok'

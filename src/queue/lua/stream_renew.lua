-- stream_renew: renew for a stream.
--
-- KEYS    as renew, then Q
-- ARGV    fleet, as renew; then
--         group
--         consumer   the caller's name in it
--         count, CALL FROM ..., TAG TOKEN ..., as renew
-- Returns as renew; -2 also if another consumer has claimed the entry
-- Effect  As renew; also resets the entry's idle time, so that other consumers of the
--         group do not take it as abandoned.  A message that is not pending (a retry,
--         an entry of a stream that was deleted) is ours by its token alone.
-- Again   Sets the time again.
local B, R, D, Q = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local call, first, hooks = redis.call, 4, {}
local group, consumer = ARGV[2], ARGV[3]
call('XLEN', Q)
--@ include seen
--@ include mark
--@ include taken_by
--@ include stream_entry

local claim = {}

function hooks.taken(tag)
  local row = pending(entry(tag))
  local ours = row and row[2] == consumer
  if ours then claim[#claim + 1] = row[1] end
  return claimed(row) and not ours
end

function hooks.renewed()
  if #claim == 0 then return end
  claim[#claim + 1] = 'JUSTID'
  redis.pcall('XCLAIM', Q, group, consumer, 0, unpack(claim))
  claim = {}
end
--@ include renew_all

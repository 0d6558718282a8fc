-- stream_settle: as settle, for a stream.
--
-- KEYS    as settle, then Q
-- ARGV    dead_max host over, as settle; then
--         group
--         consumer   the caller's name in it
--         results, as settle
-- Returns as settle; "taken" also where another consumer has claimed the entry:
--         it is that one's now
-- Effect  As settle; and an entry that is done, or has its new place in QRETRY or
--         QDEAD, is acknowledged (XACK), unless another consumer has it.
-- Again   As settle.
local B, C, R, D, X, Q = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local call, match = redis.call, string.match
local dead_max, host, first, hooks = ARGV[1], ARGV[2], 6, {}
local group, consumer = ARGV[4], ARGV[5]
call('XLEN', Q)
--@ include stream_entry

local known = {}
local function row_of(tag)
  if known[tag] == nil then known[tag] = pending(entry(tag)) or false end
  return known[tag]
end

function hooks.taken(tag)
  local row = row_of(tag)
  return claimed(row) and row[2] ~= consumer
end

function hooks.leave(tags)
  local ids = {}
  for _, tag in ipairs(tags) do
    local row = row_of(tag)
    if row and row[2] == consumer then ids[#ids + 1] = row[1] end
  end
  -- Without an id, 0-0 tests the permission for XACK: no entry has that id.
  call('XACK', Q, group, ids[1] or '0-0', unpack(ids, 2))
end
--@ include letter
--@ include seen
--@ include settle_all

-- stream_renew: as renew, for a stream.
--
-- KEYS    as renew, then Q
-- ARGV    fleet, as renew; then
--         group
--         consumer   the caller's name in it
--         TAG TOKEN ...  at most 250 pairs
-- Returns as renew; -2 also where another consumer has claimed the entry
-- Effect  As renew; and the entry is idle no longer, so that other consumers of
--         the group do not take it for abandoned.  What is not pending (a retry,
--         an entry of a stream that was deleted) is ours by its token alone.
-- Again   Sets the time again.
local B, R, D, Q = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local call, group, consumer = redis.call, ARGV[2], ARGV[3]
--@ include stream_entry

local t = call('TIME')
local stamp = string.format('%.6f', t[1] + t[2] / 1e6)
local fleet, inhand = tonumber(ARGV[1]), call('ZCARD', B)
call('ZCARD', R)
call('HLEN', D)
call('XLEN', Q)
-- Writes nothing, but is not refused at maxmemory.
call('ZREMRANGEBYRANK', B, 1, 0)
local zadd, back, claim = {}, {}, {}

-- A delivery that is ours by its token.
local function renew(tag, held)
  local row = pending(entry(tag))
  local ours = row and row[2] == consumer
  if claimed(row) and not ours then return -2 end
  if not held then
    if fleet > 0 and inhand >= fleet then return 0 end
    back[#back + 1], inhand = tag, inhand + 1
  end
  zadd[#zadd + 1], zadd[#zadd + 2] = stamp, tag
  if ours then claim[#claim + 1] = row[1] end
  return held and 1 or 2
end

local out = {stamp}
for base = 4, #ARGV, 50 do
  local tags = {}
  for i = base, math.min(base + 48, #ARGV - 1), 2 do tags[#tags + 1] = ARGV[i] end
  local values = call('HMGET', D, unpack(tags))
  local inb = call('ZMSCORE', B, unpack(tags))
  zadd, back, claim = {}, {}, {}
  for i, tag in ipairs(tags) do
    local held = inb[i]
    local live = held or call('ZSCORE', R, tag)
    local answer = -2
    if string.match(values[i] or '', '^%d+ %d+ (%S+)') ~= ARGV[base + 2 * i - 1] then
      answer = (live or values[i]) and 0 or -1
    elseif live then
      answer = renew(tag, held)
    end
    out[#out + 1] = answer
  end
  if #zadd > 0 then call('ZADD', B, unpack(zadd)) end
  if #back > 0 then call('ZREM', R, unpack(back)) end
  if #claim > 0 then
    claim[#claim + 1] = 'JUSTID'
    redis.pcall('XCLAIM', Q, group, consumer, 0, unpack(claim))
  end
end
return out

-- renew: says that deliveries are still being worked on.
--
-- KEYS    QBACKUP QRETRY QDELIVERY
-- ARGV    fleet      how many may be in hand at once, all daemons; "0": any
--         TAG TOKEN ...  at most 250 pairs
-- Returns {now, answer, ...}: 1 renewed; 2 it had expired, but nobody has taken
--         it: ours again; 0 held by another delivery, or expired while others
--         hold all places of the fleet; -1 unknown: the tag is
--         nowhere; -2 our token, but in neither zset: a foreign consumer
--         requeued or acked it (settle's "stale" clears up after it).
-- Effect  Sets the time in QBACKUP; the token stays.  An expired one is in
--         QBACKUP again before it leaves QRETRY.
-- Again   Sets the time again.
local B, R, D = KEYS[1], KEYS[2], KEYS[3]
local call = redis.call

local t = call('TIME')
local stamp = string.format('%.6f', t[1] + t[2] / 1e6)
local fleet, inhand = tonumber(ARGV[1]), call('ZCARD', B)
call('ZCARD', R)
call('HLEN', D)
-- Writes nothing, but is not refused at maxmemory.
call('ZREMRANGEBYRANK', B, 1, 0)
local out = {stamp}
for base = 2, #ARGV, 50 do
  local tags = {}
  for i = base, math.min(base + 48, #ARGV - 1), 2 do tags[#tags + 1] = ARGV[i] end
  local values = call('HMGET', D, unpack(tags))
  local inb = call('ZMSCORE', B, unpack(tags))
  local zadd, back = {}, {}
  for i, tag in ipairs(tags) do
    local held = inb[i]
    local inr = not held and call('ZSCORE', R, tag)
    local answer
    if string.match(values[i] or '', '^%d+ %d+ (%S+)') ~= ARGV[base + 2 * i - 1] then
      answer = (held or inr or values[i]) and 0 or -1
    elseif inr and fleet > 0 and inhand >= fleet then
      answer = 0
    elseif held or inr then
      zadd[#zadd + 1], zadd[#zadd + 2] = stamp, tag
      if inr then back[#back + 1], inhand = tag, inhand + 1 end
      answer = held and 1 or 2
    else
      answer = -2
    end
    out[#out + 1] = answer
  end
  if #zadd > 0 then call('ZADD', B, unpack(zadd)) end
  if #back > 0 then call('ZREM', R, unpack(back)) end
end
return out

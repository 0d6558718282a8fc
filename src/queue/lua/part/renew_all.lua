-- renew_all: the deliveries one after the other, and the answer.
-- Needs   call; B R D: QBACKUP QRETRY QDELIVERY; first: where in ARGV the pairs begin;
--         hooks: a table with
--         taken(tag): called with one that is ours by its token: true where it is
--         another consumer's by now;
--         renewed(): called after at most 25 of them
local t = call('TIME')
local stamp = string.format('%.6f', t[1] + t[2] / 1e6)
local fleet, inhand = tonumber(ARGV[1]), call('ZCARD', B)
call('ZCARD', R)
call('HLEN', D)
-- Writes nothing, but is not refused at maxmemory.
call('ZREMRANGEBYRANK', B, 1, 0)
local out = {stamp}
for base = first, #ARGV, 50 do
  local tags = {}
  for i = base, math.min(base + 48, #ARGV - 1), 2 do tags[#tags + 1] = ARGV[i] end
  local values = {}
  for i, tag in ipairs(tags) do
    values[i] = call('HSTRLEN', D, tag) <= 300 and call('HGET', D, tag)
  end
  local inb = call('ZMSCORE', B, unpack(tags))
  local zadd, back = {}, {}
  for i, tag in ipairs(tags) do
    local held = inb[i]
    local inr = not held and call('ZSCORE', R, tag)
    local answer
    if string.match(values[i] or '', '^%d+ %d+ (%S+)') ~= ARGV[base + 2 * i - 1] then
      answer = (held or inr or values[i]) and 0 or -1
    elseif not (held or inr) or hooks.taken and hooks.taken(tag) then
      answer = -2
    elseif inr and fleet > 0 and inhand >= fleet then
      answer = 0
    else
      zadd[#zadd + 1], zadd[#zadd + 2] = stamp, tag
      if inr then back[#back + 1], inhand = tag, inhand + 1 end
      answer = held and 1 or 2
    end
    out[#out + 1] = answer
  end
  -- Removes nothing, and tells now whether they may leave QRETRY.
  if #back > 0 then call('ZREM', R, '\0' .. stamp) end
  if #zadd > 0 then call('ZADD', B, unpack(zadd)) end
  if #back > 0 then call('ZREM', R, unpack(back)) end
  if hooks.renewed then hooks.renewed() end
end
return out

-- renew_all: renews the deliveries one after the other, and answers.
-- Needs   call seen taken_by unmark; B R D: QBACKUP QRETRY QDELIVERY; first: where in ARGV the
--         pops whose replies have not come begin, with their count; hooks: a table with
--         taken(tag): called with one that is ours by its token: true if another
--         consumer has it by now;
--         renewed(): called after at most 25 of them
local t = call('TIME')
local now = t[1] + t[2] / 1e6
local stamp = string.format('%.6f', now)
local fleet, inhand = tonumber(ARGV[1]), call('ZCARD', B)
call('ZCARD', R)
call('HLEN', D)

-- TAG TOKEN ...: the deliveries that are answered first.
local pairs_at = first + 1 + 2 * tonumber(ARGV[first])
local words, asked = {}, (#ARGV - pairs_at + 1) / 2
for i = pairs_at, #ARGV do words[#words + 1] = ARGV[i] end
for i = first + 1, pairs_at - 1, 2 do
  local found = taken_by(ARGV[i] .. '.', ARGV[i + 1], 0, 1000)
  for k = 1, math.min(#found, 200) do
    words[#words + 1], words[#words + 2] = found[k][1], found[k][4]
  end
end
-- Writes nothing, but goes first so that maxmemory does not refuse the later commands.
call('ZREMRANGEBYRANK', B, 1, 0)

local instance = string.match(words[2] or '', '^(.*)%.%d+%.%d+$')
local known = instance and pops_of(instance)
if known and known[3] < now - 3600 then
  call('HSET', D, set_pops(instance, known[1], known[2], stamp))
end

-- The answer for a token that is not that of the tag; live: the tag is in a zset.
local function not_ours(live, token)
  if seen(token) then return live and 0 or -3 end
  return live and -4 or -1
end

local out = {stamp}
for base = 1, #words, 50 do
  local tags = {}
  for i = base, math.min(base + 48, #words - 1), 2 do tags[#tags + 1] = words[i] end
  local values = {}
  for i, tag in ipairs(tags) do
    values[i] = call('HSTRLEN', D, tag) <= 300 and call('HGET', D, tag)
  end
  local inb = call('ZMSCORE', B, unpack(tags))
  local zadd, back = {}, {}
  for i, tag in ipairs(tags) do
    local held, token = inb[i], words[base + 2 * i - 1]
    local inr = not held and call('ZSCORE', R, tag)
    local answer
    local has, mark, who = unmark(string.match(values[i] or '', '^%d+ %d+ (%S+)'))
    if has ~= token then
      answer = not_ours(held or inr or values[i], token)
    elseif not (held or inr) or hooks.taken and hooks.taken(tag) then
      answer = -2
    elseif inr and fleet > 0 and inhand >= fleet then
      answer = 0
    else
      zadd[#zadd + 1], zadd[#zadd + 2] = stamp, tag
      if inr then back[#back + 1], inhand = tag, inhand + 1 end
      answer = mark and (mark == 'drop' and 3 or 4) or held and 1 or 2
      if mark and who ~= '' then answer = answer .. ' ' .. who end
    end
    if #out <= asked then out[#out + 1] = answer end
  end
  -- Removes nothing, but shows now whether they may leave QRETRY.
  if #back > 0 then call('ZREM', R, '\0' .. stamp) end
  if #zadd > 0 then call('ZADD', B, unpack(zadd)) end
  if #back > 0 then call('ZREM', R, unpack(back)) end
  if hooks.renewed then hooks.renewed() end
end
return out

-- renew: extends the leases of deliveries.
--
-- KEYS    QBACKUP QRETRY QDELIVERY
-- ARGV    fleet      how many may be in flight at once, all daemons; "0": any
--         CALL FROM  of a pop whose reply is late, as reclaim has them; "": none
--         TAG TOKEN ...  at most 250 pairs
-- Returns {now, answer, ...}; of each pair: 1 renewed; 2 it had expired, but nobody has
--         taken it: ours again; 0 held by another delivery, or expired while others
--         hold all places of the fleet; -1 gone: the tag is nowhere; -2 our token, but in
--         neither zset: a foreign consumer requeued or acked it (settle's "stale"
--         removes the rest); 3 renewed as 1 or 2, and cancelled: end the handler, then
--         ack; 4 the same, then make a dead letter; 5 the same, then retry; "3 WHO" to
--         "5 WHO" if it is known who cancelled it.
-- Effect  Sets the time in QBACKUP; the token stays.  An expired delivery is in
--         QBACKUP again before it leaves QRETRY.  Messages of a pop whose reply has
--         not come are renewed, too: of one page of QBACKUP, at most 200.
-- Again   Sets the time again.
local B, R, D = KEYS[1], KEYS[2], KEYS[3]
local call = redis.call
--@ include mark
--@ include taken_by

local t = call('TIME')
local now = t[1] + t[2] / 1e6
local stamp = string.format('%.6f', now)
local fleet, inhand = tonumber(ARGV[1]), call('ZCARD', B)
call('ZCARD', R)
call('HLEN', D)

-- TAG TOKEN ...: the deliveries that are answered first.
local words, asked = {}, (#ARGV - 3) / 2
for i = 4, #ARGV do words[#words + 1] = ARGV[i] end
local found = ARGV[2] ~= '' and taken_by(ARGV[2] .. '.', ARGV[3], 0, 1000) or {}
for k = 1, math.min(#found, 200) do
  words[#words + 1], words[#words + 2] = found[k][1], found[k][4]
end
-- Writes nothing, but goes first so that maxmemory does not refuse the later commands.
call('ZREMRANGEBYRANK', B, 1, 0)

local out = {stamp}
for base = 1, #words, 50 do
  local tags = {}
  for i = base, math.min(base + 48, #words - 1), 2 do tags[#tags + 1] = words[i] end
  local values = {}
  for i, tag in ipairs(tags) do
    values[i] = call('HSTRLEN', D, tag) <= 300 and
        call('HGET', D, tag)
  end
  local inb = call('ZMSCORE', B, unpack(tags))
  local zadd, back = {}, {}
  for i, tag in ipairs(tags) do
    local held, token = inb[i], words[base + 2 * i - 1]
    local inr = not held and call('ZSCORE', R, tag)
    local answer
    local has, mark, who = unmark(string.match(values[i] or '', '^%d+ %d+ (%S+)'))
    if has ~= token then
      answer = (held or inr or values[i]) and 0 or -1
    elseif not (held or inr) then
      answer = -2
    elseif inr and fleet > 0 and inhand >= fleet then
      answer = 0
    else
      zadd[#zadd + 1], zadd[#zadd + 2] = stamp, tag
      if inr then back[#back + 1], inhand = tag, inhand + 1 end
      answer = mark == 'drop' and 3 or mark and 4 or who and 5 or held and 1 or 2
      if who and who ~= '' then answer = answer .. ' ' .. who end
    end
    if #out <= asked then out[#out + 1] = answer end
  end
  -- Removes nothing, but shows now whether they may leave QRETRY.
  if #back > 0 then call('ZREM', R, '\0' .. stamp) end
  if #zadd > 0 then call('ZADD', B, unpack(zadd)) end
  if #back > 0 then call('ZREM', R, unpack(back)) end
end
return out

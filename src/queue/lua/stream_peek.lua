-- stream_peek: peek for the entries that the group has not been given yet.
--
-- KEYS    Q
-- ARGV    group
--         after      an entry's id: only later ones; "": from the group's place on
--         count      entries returned
--         maxbytes   of messages looked at; one always is
--         cut        bytes of a message that are returned, "-1": all
-- Returns as peek; tag: the entry's id; total: 0
-- Effect  None: reads only.
-- Again   Safe to repeat: it reads again.
local Q, group, after, call = KEYS[1], ARGV[1], ARGV[2], redis.call
local count, room, cut = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
--@ include stream_new
--@ include stream_message
if after == '' then after = position() or '0-0' end
local t = call('TIME')
local out = {string.format('%.6f', t[1] + t[2] / 1e6), 0}
local bytes = 0
while count > 0 and bytes < room do
  local e = beyond(after) and call('XRANGE', Q, beyond(after), '+', 'COUNT', 1)[1]
  if not e then break end
  local body, cost = message(e[2], 16777216)
  local o = #out
  out[o + 1], out[o + 2], out[o + 3], out[o + 4] = '', e[1], '', #body
  out[o + 5] = cut >= 0 and string.sub(body, 1, cut) or body
  bytes, count, after = bytes + cost, count - 1, e[1]
end
return out

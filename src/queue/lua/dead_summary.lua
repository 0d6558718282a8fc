-- dead_summary: counts the latest dead letters by reason, and reads the newest.
--
-- KEYS    QDEAD
-- ARGV    look       letters looked at, >= 1
--         maxbytes   of letters looked at, plus 64 bytes for each name and value; one
--                    letter is always looked at
--         cut        bytes of each text that are returned, >= 1
--         reasons    counted apart, at most, >= 1
-- Returns {total, looked, newest, then for each reason: its name, how many letters, the last
--         of them}
--         total: letters in QDEAD; newest: {letter, id, reason, status, host, attempts,
--         answer, error}, "" for a missing one, {} if there is no letter.  The reasons
--         beyond `reasons` are counted as "others".
-- Effect  None: reads only.
-- Again   Safe to repeat: it reads again.
local X = KEYS[1]
local call, sub = redis.call, string.sub
local look, room, cut = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local most = tonumber(ARGV[4])
local out = {call('XLEN', X), 0, {}}
local place, known = {}, 0
local at, looked, bytes = '+', 0, 0

-- Cuts the beginning of the error: its end says most.
local function newest(letter, f)
  local row = {letter}
  for i, name in ipairs({'id', 'reason', 'status', 'host', 'attempts', 'answer'}) do
    row[i + 1] = sub(f[name] or '', 1, cut)
  end
  row[8] = sub(f.error or '', -cut)
  return row
end

local function count(letter, reason)
  if not place[reason] and known >= most then reason = 'others' end
  local i = place[reason]
  if not i then
    known, i = known + 1, #out + 1
    place[reason] = i
    out[i], out[i + 1], out[i + 2] = reason, 0, letter
  end
  out[i + 1] = out[i + 1] + 1
end

while looked < look and bytes < room do
  local e = call('XREVRANGE', X, at, '-', 'COUNT', 1)[1]
  if not e then break end
  local v, f = e[2], {}
  for i = 1, #v, 2 do f[v[i]] = v[i + 1] end
  looked, bytes, at = looked + 1, bytes + 64 * #v, '(' .. e[1]
  for _, s in ipairs(v) do bytes = bytes + #s end
  if looked == 1 then out[3] = newest(e[1], f) end
  count(e[1], sub(f.reason or '', 1, cut))
end
out[2] = looked
return out

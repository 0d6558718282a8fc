-- dead_list: reads a page of the dead letters that match.  Looks at 250 letters and 256 KiB at
-- most (each name and value counts 64 bytes more), but at one always.
--
-- KEYS    QDEAD
-- ARGV    newest     "1": from the newest to the oldest
--         from       first letter, "-" "+" or an id, "(ID": after it
--         to         last letter
--         count      letters returned, >= 1
--         cut        bytes of a message that are returned, "-1": all
--         reason     "": any
--         match      what message, error or answer contain; "": anything
--         id ...     of message or letter; none: any
-- Returns {total, last, looked, next, then for each letter: {letter, length of
--         its message, field, value, ...}}
--         total: letters there; last: the newest, if ARGV asks for all from the oldest on,
--         else ""; next: "" at the end, else `from` of the next call.
-- Effect  None: reads only.
-- Again   Safe to repeat: it reads again.
local X = KEYS[1]
local call, find = redis.call, string.find
local newest, at, to = ARGV[1] == '1', ARGV[2], ARGV[3]
local count, cut, reason, text = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6], ARGV[7]
local ids
for i = 8, #ARGV do
  ids = ids or {}
  ids[ARGV[i]] = true
end

local function wanted(letter, f)
  return (reason == '' or f.reason == reason)
    and (not ids or ids[letter] or ids[f.id or ''])
    and (text == '' or find(f.message or '', text, 1, true) or find(f.error or '', text, 1, true)
      or find(f.answer or '', text, 1, true))
end

-- This loads its message, of any size.
local last = not newest and to == '+' and call('XREVRANGE', X, '+', '-', 'COUNT', 1)[1]
local out = {call('XLEN', X), last and last[1] or '', 0, ''}
local got, looked, bytes = 0, 0, 0
while true do
  local e
  if newest then
    e = call('XREVRANGE', X, at, to, 'COUNT', 1)[1]
  else
    e = call('XRANGE', X, at, to, 'COUNT', 1)[1]
  end
  if not e then break end
  local v, f = e[2], {}
  looked, bytes, at = looked + 1, bytes + 64 * #v, '(' .. e[1]
  for i = 1, #v, 2 do
    f[v[i]] = v[i + 1]
    bytes = bytes + #v[i] + #v[i + 1]
  end
  if wanted(e[1], f) then
    local letter = {e[1], #(f.message or '')}
    for i = 1, #v, 2 do
      letter[i + 2] = v[i]
      letter[i + 3] = v[i] == 'message' and cut >= 0 and string.sub(v[i + 1], 1, cut) or v[i + 1]
    end
    got = got + 1
    out[4 + got] = letter
  end
  if got >= count or looked >= 250 or bytes >= 262144 then
    out[4] = at
    break
  end
end
out[3] = looked
return out

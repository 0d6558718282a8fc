-- peek: reads the next messages without taking them.
--
-- KEYS    Q, or QDELAYED, or QRETRY QCONTEXT QDELIVERY
-- ARGV    what       the first key: "waiting", "delayed" or "retry"; "ids": Q of kind
--                    "unique"
--         offset     messages passed over
--         count      messages returned
--         maxbytes   of messages looked at; one always is
--         cut        bytes of a message that are returned, "-1": all
--         from       a score: offset counts from the first with this score or more;
--                    "": from the first of all
-- Returns {now, total, then for each message: score, tag, delivery, size, payload}
--         score, tag, delivery (the field of QDELIVERY): "" if it has none
-- Effect  None: reads only.
-- Again   Safe to repeat: it reads again.
local K, C, D = KEYS[1], KEYS[2], KEYS[3]
local call = redis.call
local what, offset, count = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local room, cut = tonumber(ARGV[4]), tonumber(ARGV[5])

local function waiting(i)
  return call('LINDEX', K, -1 - i)
end

local Q = K
--@ include unique
local function ids(i)
  local m = call('ZRANGE', K, i, i, 'WITHSCORES')
  if m[1] then return m[1], m[2], tag_of(m[1]) end
end

local function delayed(i)
  local m = call('ZRANGE', K, i, i, 'WITHSCORES')
  return m[1], m[2]
end

local function retry(i)
  local m = call('ZRANGE', K, i, i, 'WITHSCORES')
  if not m[1] then return nil end
  return call('HGET', C, m[1]) or '', m[2], m[1], call('HGET', D, m[1])
end

local at = ({waiting = waiting, ids = ids, delayed = delayed, retry = retry})[what]
local t = call('TIME')
local out = {string.format('%.6f', t[1] + t[2] / 1e6), call(what == 'waiting' and 'LLEN' or 'ZCARD', K)}
local bytes = 0
if ARGV[6] ~= '' then offset = offset + call('ZCOUNT', K, '-inf', '(' .. ARGV[6]) end
for i = offset, offset + count - 1 do
  local body, score, tag, delivery = at(i)
  if not body then break end
  local o = #out
  out[o + 1], out[o + 2], out[o + 3], out[o + 4] = score or '', tag or '', delivery or '', #body
  out[o + 5] = cut >= 0 and string.sub(body, 1, cut) or body
  bytes = bytes + #body + #out[o + 2] + #out[o + 3]
  if bytes >= room then break end
end
return out

-- peek: reads a page of messages without taking them: 250 and 256 KiB at most, but one always.
-- Of a stream those that the group has not been given yet.
--
-- KEYS    Q, or QDELAYED, or QRETRY, QBACKUP or QHELD then QCONTEXT QDELIVERY
-- ARGV    what       the first key: "waiting", or "left", a list whose left end is the oldest;
--                    "delayed"; "ids": Q of kind "unique"; "tags": the others.  Of a stream:
--                    its group
--         count      messages returned at most
--         cut        bytes of a message that are returned, "-1": all
--         from       a score: offset counts from the first with this score or more;
--                    "": from the first of all.  Of a stream: an entry's id, only later ones;
--                    "": from the group's place on
--         offset     messages passed over
-- Returns {now, from, offset, more, then for each message: score, tag, delivery, size, payload}
--         from, offset: ARGV of the next page; more: 0 if this page is the last one
--         score, tag, delivery (the field of QDELIVERY; a newline and the saved text follow):
--         "" if it has none; tag: of an entry its id
-- Effect  None: reads only.
-- Again   Safe to repeat: it reads again.
--@ sources list stream
local K, call = KEYS[1], redis.call
local what, count, cut = ARGV[1], math.min(tonumber(ARGV[2]), 250), tonumber(ARGV[3])
local from, offset = ARGV[4], tonumber(ARGV[5])
local bytes, most = 0, 262144
-- at(i): payload, score, tag, delivery; its size, if the payload was not read; and what it counts
-- as, if not its size.
--@ for list
local Q, C, D = K, KEYS[2], KEYS[3]
local first = offset + (from ~= '' and call('ZCOUNT', K, '-inf', '(' .. from) or 0)
--@ include unique
--@ include mark

-- Redis walks to an index within a list, so this reads some messages at once: first one, then as
-- many as there is room for, if they are as large as those before.
local chunk, left, n = {}, 0, 0.5
local function waiting(i)
  if left == 0 then
    n = math.max(math.min(2 * n, 16, math.floor((most - bytes) * (i - first) / (bytes + 1))), 1)
    chunk = what == 'left' and call('LRANGE', K, i, i + n - 1) or call('LRANGE', K, -i - n, -1 - i)
    left = #chunk
  end
  left = left - 1
  return chunk[what == 'left' and #chunk - left or left + 1]
end

local function delayed(i)
  local m = call('ZRANGE', K, i, i, 'WITHSCORES')
  return m[1], m[2]
end

local function ids(i)
  local id, score = delayed(i)
  return id, score, id and tag_of(id)
end

local function tags(i)
  local tag, score = delayed(i)
  if not tag then return nil end
  local body = cut ~= 0 and call('HGET', C, tag) or ''
  local delivery = call('HGET', D, tag)
  local field = saved(tag, delivery)
  local text = field and call('HGET', C, field)
  if text then delivery = delivery .. '\n' .. text end
  return body, score, tag, delivery, cut == 0 and call('HSTRLEN', C, tag)
end

local at = ({waiting = waiting, left = waiting, ids = ids, delayed = delayed, tags = tags})[what]
--@ for stream
local Q, group, first = K, what, 0
offset = 0
--@ include stream_new
--@ include stream_message
if from == '' then from = position() or '0-0' end
local function at()
  local e = beyond(from) and call('XRANGE', K, beyond(from), '+', 'COUNT', 1)[1]
  if not e then return nil end
  from = e[1]
  local body, cost = message(e[2], 16777216)
  return body, '', e[1], '', nil, cost
end
--@ end
local t = call('TIME')
local out = {string.format('%.6f', t[1] + t[2] / 1e6), from, offset, 1}
for i = first, first + count - 1 do
  local body, score, tag, delivery, size, cost = at(i)
  if not body then
    out[4] = 0
    break
  end
--@ for list
  score = score or ''
  if score ~= from then from, offset = score, 0 end
  offset = offset + 1
--@ end
  local o = #out
  out[o + 1], out[o + 2], out[o + 3], out[o + 4] = score, tag or '', delivery or '', size or #body
  out[o + 5] = cut >= 0 and string.sub(body, 1, cut) or body
  bytes = bytes + (cost or #body + #out[o + 2] + #out[o + 3])
  if bytes >= most then break end
end
out[2], out[3] = from, offset
return out

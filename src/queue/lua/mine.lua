-- mine: reads the messages that a pop has taken whose reply was lost.
--
-- KEYS    QBACKUP QCONTEXT QDELIVERY
-- ARGV    call       of the pop
--         from       Redis seconds; earlier deliveries are not looked at ("0": all)
--         offset     from there; 0, or what the last page returned
--         max        of a longer payload only the length is sent
--         page       entries looked at, <= 1000; fewer if their tags are large
-- Returns {now, from, offset, took, then for each message:
--         tag, idlen, token, attempts, crashes, payload} as pop
--         from: "" after the last page.  A message may be on two pages, and messages
--         are not in the order of the pop.  took: 1 if this Redis has seen that the
--         pop took messages, and no later one did; else 0
-- Effect  None: reads only.  A pop takes little more than maxbytes, which bounds the
--         reply.
-- Again   Reads again.
local B, C, D = KEYS[1], KEYS[2], KEYS[3]
local call = redis.call
local prefix, from, offset = ARGV[1] .. '.', ARGV[2], tonumber(ARGV[3])
local max, page = tonumber(ARGV[4]), tonumber(ARGV[5])
--@ include seen
--@ include mark
--@ include taken_by

local t = call('TIME')
call('HLEN', C)
local instance, number = string.match(ARGV[1], '^(.*)%.(%d+)$')
local p = pops_of(instance)
local found, go_on, past = taken_by(prefix, from, offset, page)
local out = {string.format('%.6f', t[1] + t[2] / 1e6), go_on, past, p and p[2] == tonumber(number) and 1 or 0}
for _, m in ipairs(found) do
  local tag, a, c, token, l, front = unpack(m)
  if front then token = front .. token end
  local size = call('HSTRLEN', C, tag)
  local body = size > max and size or call('HGET', C, tag)
  if body then
    local o = #out
    out[o + 1], out[o + 2], out[o + 3] = tag, math.min(tonumber(l), #tag), token
    out[o + 4], out[o + 5], out[o + 6] = tonumber(a), tonumber(c), body
  end
end
return out

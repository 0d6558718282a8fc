-- mine: what a pop whose reply was lost has taken.
--
-- KEYS    QBACKUP QCONTEXT QDELIVERY
-- ARGV    call       of the pop
--         from       Redis seconds; deliveries before are not looked at ("0": all)
--         offset     among those; 0, or what the last page returned
--         max        a longer payload is not sent: its length is
--         page       entries looked at, <= 1000; fewer where their tags are large
-- Returns {now, from, offset, took, then for each message:
--         tag, idlen, token, attempts, crashes, payload} as pop
--         from: "" after the last page; the same message may be on two pages, and
--         those of one call are not in their order; took: 1 where this Redis has seen
--         that the pop took something, and no later one did; else 0
-- Effect  None: reads only.  A pop takes little more than maxbytes, so what one
--         call has taken is bounded.
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

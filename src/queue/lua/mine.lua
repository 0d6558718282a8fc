-- mine: what a pop whose reply was lost has taken.
--
-- KEYS    QBACKUP QCONTEXT QDELIVERY
-- ARGV    call       of the pop
--         from       Redis seconds; deliveries before are not looked at ("0": all)
--         offset     among those; 0, or what the last page returned
--         max        a longer payload is not sent: its length is
--         page       entries looked at, <= 1000; fewer where their tags are large
-- Returns {now, from, offset, then for each message as pop:
--         tag, length of the id in it, token, attempts, crashes, payload}
--         from: "" after the last page; the same message may be on two pages, and
--         those of one call are not in their order.
-- Effect  None: reads only.  A pop takes little more than maxbytes, so what one
--         call has taken is bounded.
-- Again   Reads again.
local B, C, D = KEYS[1], KEYS[2], KEYS[3]
local call = redis.call
local prefix, from, offset = ARGV[1] .. '.', ARGV[2], tonumber(ARGV[3])
local max, page = tonumber(ARGV[4]), tonumber(ARGV[5])

local t = call('TIME')
call('HLEN', C)
-- By rank, since a LIMIT would count its way through all that have one time; and one by
-- one, since a tag could be of any size.
local tags, times, size = {}, {}, 0
local rank = call('ZCOUNT', B, '-inf', '(' .. from) + offset
while #tags < page and size <= 65536 do
  local e = call('ZRANGE', B, rank + #tags, rank + #tags, 'WITHSCORES')
  if not e[1] then break end
  size = size + #e[1]
  tags[#tags + 1], times[#times + 1] = e[1], e[2]
end
local out = {string.format('%.6f', t[1] + t[2] / 1e6), '', 0}
if #tags == page or size > 65536 then
  -- Go on at the last time seen; within it, if all of the page has that time.
  out[2] = times[#times]
  if times[1] == out[2] then out[3] = #tags + (from == out[2] and offset or 0) end
end
for _, tag in ipairs(tags) do
  local value = call('HSTRLEN', D, tag) <= 300 and call('HGET', D, tag) or ''
  local a, c, token, l = string.match(value, '^(%d+) (%d+) (%S+) %S+ (%d+)$')
  if token and string.sub(token, 1, #prefix) == prefix then
    local size = call('HSTRLEN', C, tag)
    local body = size > max and size or call('HGET', C, tag)
    if body then
      local o = #out
      out[o + 1], out[o + 2], out[o + 3] = tag, math.min(tonumber(l), #tag), token
      out[o + 4], out[o + 5], out[o + 6] = tonumber(a), tonumber(c), body
    end
  end
end
return out

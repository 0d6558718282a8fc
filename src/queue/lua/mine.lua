-- mine: what a pop whose reply was lost has taken.
--
-- KEYS    QBACKUP QCONTEXT QDELIVERY
-- ARGV    call       of the pop
--         from       Redis seconds; deliveries before are not looked at ("0": all)
--         offset     among those; 0, or what the last page returned
--         max        a longer payload is not sent: its length is
--         page       entries looked at, <= 1000
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
local found = call('ZRANGEBYSCORE', B, from, '+inf', 'WITHSCORES', 'LIMIT', offset, page)
local out = {string.format('%.6f', t[1] + t[2] / 1e6), '', 0}
if #found == 2 * page then
  -- Go on at the last time seen; within it, if all of the page has that time.
  out[2] = found[#found]
  if found[2] == out[2] then out[3] = page + (from == out[2] and offset or 0) end
end
for base = 1, #found, 100 do
  local tags = {}
  for i = base, math.min(base + 98, #found - 1), 2 do tags[#tags + 1] = found[i] end
  local values = call('HMGET', D, unpack(tags))
  for i, tag in ipairs(tags) do
    local a, c, token, l = string.match(values[i] or '', '^(%d+) (%d+) (%S+) %S+ (%d+)$')
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
end
return out

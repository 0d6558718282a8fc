-- pop_retries: the first write; then due retries, which keep tag and counts.
-- Needs   pop_begin, pop_gate; hooks.retried(tags): called with tags that are in
--         QBACKUP, before they leave QRETRY
-- Gives   give(), got, bytes, dropped, full: no room for more
-- Writes nothing, but is not refused at maxmemory: from here on only a missing
-- permission can strike.
call('ZREMRANGEBYRANK', B, 1, 0)
-- The rate is written for all n, and again when it is known how many came.
local function save_rate(messages)
  local ahead = tat + messages * gap
  return 'SET', K, string.format('%.6f', ahead), 'PX', math.ceil((ahead - now) * 1000) + 1000
end
if gap > 0 then call(save_rate(n)) end
local out, got, bytes, dropped, full = {'ok', stamp, 0, '', 0, ''}, 0, 0, 0, false

local function give(tag, idlen, token, attempts, crashes, body)
  local o = #out
  out[o + 1], out[o + 2], out[o + 3] = tag, idlen, token
  out[o + 4], out[o + 5], out[o + 6] = attempts, crashes, body
end

local looked = 0
while first and tonumber(first) <= now and got < n and not full and looked < n + 100 do
  local tags = call('ZRANGEBYSCORE', R, '-inf', stamp, 'LIMIT', 0, math.min(n - got, 25))
  if #tags == 0 then break end
  local values = call('HMGET', D, unpack(tags))
  local zadd, hset, leave, gone = {}, {}, {}, {}
  for i, tag in ipairs(tags) do
    local size = call('HSTRLEN', C, tag)
    if got > 0 and bytes + size > room then full = true break end
    local body = size > max and size or call('HGET', C, tag)
    looked = looked + 1
    leave[#leave + 1] = tag
    if not body then
      gone[#gone + 1] = tag
    else
      local a, c, tok, l = match(values[i] or '', '^(%d+) (%d+) (%S+) %S+ (%d+)$')
      local attempts = math.min(tonumber(a) or 0, 999999999)
      local crashes = math.min(tonumber(c) or 0, 999999999) + ((tok or '-') ~= '-' and 1 or 0)
      local idlen = math.min(tonumber(l) or #tag, #tag)
      got, bytes = got + 1, bytes + size
      local token = name .. '.' .. got
      zadd[#zadd + 1], zadd[#zadd + 2] = stamp, tag
      hset[#hset + 1], hset[#hset + 2] = tag, attempts .. ' ' .. crashes .. ' ' .. token .. ' ' .. stamp .. ' ' .. idlen
      give(tag, idlen, token, attempts, crashes, body)
    end
  end
  if #zadd > 0 then
    call('HSET', D, unpack(hset))
    call('ZADD', B, unpack(zadd))
  end
  if hooks.retried then hooks.retried(leave) end
  call('ZREM', R, unpack(leave))
  if #gone > 0 then
    dropped = dropped + #gone
    call('HDEL', D, unpack(gone))
  end
end

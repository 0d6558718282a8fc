-- pop_list: takes new messages from a list.
-- Needs   pop; ident(body)
-- Gives   fresh(enough, newest): from the oldest end, or, the newest first, from the other one;
--         took: how many came from the list; counted: how many of them from the oldest end
local took, counted, last = 0, 0, ' ' .. stamp .. ' '
local oldest_left = ARGV[11] == 'left'
local later = first and 1 or 0
local function fresh(enough, newest)
  local front = oldest_left ~= (newest or false)
  while got < enough and took < waiting and not full do
    local bodies, tags, idlens, tokens, m = {}, {}, {}, {}, 0
    -- Read them one by one: a chunk of LRANGE could be of any size.  What is read is
    -- taken, for a large message is not to be read twice.
    repeat
      if left < 1 or got > 0 and bytes >= room then full = true break end
      local body = call('LINDEX', Q, front and text(m) or '-' .. text(m + 1))
      local id = ident(body)
      if id == false then full = true break end
      m, got, bytes, left = m + 1, got + 1, bytes + #body, left - 1
      tokens[m] = name .. text(got)
      bodies[m], tags[m] = body, id or '~' .. tokens[m]
      idlens[m] = #tags[m]
    until m == 25 or got == enough or took + m == waiting
    if m == 0 then break end
    local inb = call('ZMSCORE', B, unpack(tags))
    local inr = later > 0 and call('ZMSCORE', R, unpack(tags))
    local zadd, hset, copy, used = {}, {}, {}, {}
    for j = 1, m do
      local tag, body, k = tags[j], bodies[j], 2 * j - 1
      if inb[j] or inr and inr[j] or used[tag] then
        repeat tag = tag .. '#' .. tokens[j]
        until not (used[tag] or call('ZSCORE', B, tag) or call('ZSCORE', R, tag))
      end
      used[tag] = true
      zadd[k], zadd[k + 1] = stamp, tag
      hset[k], hset[k + 1] = tag, '0 0 ' .. tokens[j] .. last .. text(idlens[j])
      copy[k], copy[k + 1] = tag, body
      give(tag, idlens[j], tokens[j], 0, 0, #body > max and #body or body)
    end
    local leftovers = lease(zadd, hset, copy)
    call('LTRIM', Q, front and m or 0, front and -1 or -m - 1)
    -- Another consumer has taken a message of one of these tags from rqd: so has its text.
    for i = 2, leftovers and #zadd or 0, 2 do redis.pcall('HDEL', C, zadd[i] .. '\0saved') end
    took = took + m
    if not newest then counted = counted + m end
  end
end

-- pop_zset: takes due ids.
-- Needs   pop, unique
-- Gives   fresh(enough, newest)
--
-- Each id leaves Q and QRETRY, wherever it is.  An id that is due in Q and waits in QRETRY keeps
-- the counts that it has there.  An id in QBACKUP is not delivered: it is put off until it
-- leaves (see unique.lua).  An id whose cancelled run waits in QRETRY is put off, too: it is
-- another message.  A score from 1e11 on is milliseconds, and is replaced when due.
-- Gives due ids with scores in milliseconds their place among the others.  Does so for
-- as many as fresh() may look at, since ids that run would hide the others.
local seen, last = 0, string.format('%.0f', now * 1000)
for _ = 1, n + 100 do
  local e = seen <= room and call('ZRANGEBYSCORE', Q, '1e11', last, 'WITHSCORES', 'LIMIT', 0, 1)
  if not e or not e[1] then break end
  seen = seen + #e[1]
  call('ZADD', Q, 'XX', string.format('%.6f', tonumber(e[2]) / 1000), e[1])
end

-- Reads the first due ids, or the last, one by one: they are of any size.
local seen_ids = 0
local function look(count, newest)
  local ids, tags, scores = {}, {}, {}
  local size = 0
  for i = 1, count do
    local at = text(i - 1)
    local e = newest and call('ZREVRANGEBYSCORE', Q, stamp, '-inf', 'WITHSCORES', 'LIMIT', at, 1) or
      call('ZRANGE', Q, at, at, 'WITHSCORES')
    local score = tonumber(e[2])
    if not score or score > now then break end
    size = size + #e[1]
    if got + seen_ids + i > 1 and bytes + size > room then full = true break end
    ids[i], tags[i], scores[i] = e[1], tag_of(e[1]), score
  end
  return ids, tags, scores
end

local function fresh(enough, newest)
  while got < enough and seen_ids < n + 100 and not full and left >= 1 do
    local ids, tags, scores = look(math.min(enough - got, 25), newest)
    if #ids == 0 then break end
    local inb = call('ZMSCORE', B, unpack(tags))
    local inr = first and call('ZMSCORE', R, unpack(tags)) or {}
    local zadd, hset, copy, taken, retried, new, away = {}, {}, {}, {}, {}, {}, {}
    for i, id in ipairs(ids) do
      local tag = tags[i]
      if left < 1 then full = true break end
      seen_ids, bytes = seen_ids + 1, bytes + #id
      local value = inr[i] and sub(call('HGET', D, tag) or '', 1, 300) or ''
      local a, c, tok = match(value, '^(%d+) (%d+) (%S+)')
      local bare, mark = unmark(tok or '-')
      if inb[i] or mark then
        away[#away + 1], away[#away + 2] = put_off(scores[i]), id
      else
        local attempts = math.min(tonumber(a) or 0, 999999999)
        local crashes = math.min(tonumber(c) or 0, 999999999) + (bare ~= '-' and 1 or 0)
        local sort = inr[i] and retried or new
        sort[#sort + 1] = tag
        -- Take it even without room, though it may be returned: the ids behind it must
        -- not wait.
        got, left = got + 1, left - (attempts + crashes > 0 and math.min(each, left) or 1)
        local token = name .. text(got)
        zadd[#zadd + 1], zadd[#zadd + 2] = stamp, tag
        local body, length = with_text(tag, inr[i] and value, (#id > max or crashes > most) and #id or id, #tag)
        hset[#hset + 1], hset[#hset + 2] = tag, attempts .. ' ' .. crashes .. ' ' .. token .. ' ' .. stamp .. ' ' .. length
        copy[#copy + 1], copy[#copy + 2] = tag, id
        taken[#taken + 1] = id
        give(tag, #tag, token, attempts, crashes, body)
      end
    end
    if #away > 0 then call('ZADD', Q, 'XX', unpack(away)) end
    if #taken > 0 then
      -- As in pop_list.
      for i = 1, lease(zadd, hset, copy) and #new or 0 do redis.pcall('HDEL', C, new[i] .. '\0saved') end
      if #retried > 0 then call('ZREM', R, unpack(retried)) end
      call('ZREM', Q, unpack(taken))
    end
  end
end

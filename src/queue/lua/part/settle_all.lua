-- settle_all: writes the results one after the other, and answers.
-- Needs   letter unmark; settle_begin, and what that needs;
--         first: where in ARGV the results begin; hooks: also
--         taken(tag): true if another consumer has it by now;
--         due(): a time to answer as due, nil for QRETRY's first
local words = {ack = 3, retry = 4, defer = 4, ['return'] = 3, dead = 8, stale = 3}
local copied = 0

-- Acks at most 50 deliveries; at[i]: where ARGV has the ith.
local function acks(at)
  local tags, done = {}, {}
  for i, a in ipairs(at) do tags[i] = ARGV[a + 1] end
  local values = call('HMGET', D, unpack(tags))
  local inb = #tags > 8 and call('ZMSCORE', B, unpack(tags))
  for i, a in ipairs(at) do
    local tag, answer = tags[i], at.answer[i]
    if token(values[i]) == ARGV[a + 2] then
      done[#done + 1] = tag
      local taken = hooks.taken and hooks.taken(tag)
      if hooks.leave then hooks.leave({tag}) end
      local was = inb and inb[i] or not inb and call('ZREM', B, tag) == 1
      was = was or retries and call('ZSCORE', R, tag)
      out[answer] = was and not taken and 'ok' or 'taken'
    else
      local live = values[i] or call('ZSCORE', B, tag) or call('ZSCORE', R, tag)
      out[answer] = not_ours(live, ARGV[a + 2])
    end
  end
  if #done == 0 then return end
  if inb then call('ZREM', B, unpack(done)) end
  if retries then call('ZREM', R, unpack(done)) end
  call('HDEL', C, unpack(done))
  call('HDEL', D, unpack(done))
end

-- Settles one delivery in any other way.
local function one(a)
  local op, tag = ARGV[a], ARGV[a + 1]
  local value = call('HGET', D, tag)
  local live = call('ZSCORE', B, tag) or call('ZSCORE', R, tag)
  local n, crashes, tok, rest = match(string.sub(value or '', 1, 300), '^(%d+) (%d+) (%S+) (%S+ %d+)$')
  local bare, mark, who, front = unmark(tok)
  if bare ~= ARGV[a + 2] then return not_ours(live or value, ARGV[a + 2]) end
  if not live or hooks.taken and hooks.taken(tag) then forget({tag}) return 'taken' end
  if op == 'stale' then return 'held' end
  local size = call('HSTRLEN', C, tag)
  local missing = size == 0 and call('HEXISTS', C, tag) == 0
  -- An ack and a dead letter end a cancelled message anyway; any other result would
  -- deliver it again.
  local cancelled = mark and op ~= 'dead'
  local by = mark and who ~= '' and 'by ' .. who
  local answer = (mark == 'drop' or missing) and 'cancelled' or 'cancelled dead'
  if by then answer = answer .. ' ' .. by end
  if cancelled and (mark == 'drop' or missing) then forget({tag}) return answer end
  if missing then forget({tag}) return 'lost' end
  local attempts = math.min(tonumber(n), 999999998)
  local function later(delay)
    -- They change nothing: if an ACL denies one, that must happen before the first
    -- change.
    call('ZREM', B, nobody)
    call('HSET', D, tag, value)
    call('ZADD', R, string.format('%.6f', now + delay), tag)
    retries = true
    if hooks.leave then hooks.leave({tag}) end
    call('ZREM', B, tag)
    call('HSET', D, tag, attempts .. ' ' .. crashes .. ' ' .. (front or '') .. '- ' .. rest)
  end
  if op == 'return' and not cancelled then later(0) return 'ok' end
  if (op == 'retry' or op == 'defer') and not cancelled then
    attempts = attempts + (op == 'retry' and 1 or 0)
    later(tonumber(ARGV[a + 3]) or 0)
    return 'ok'
  end
  if copied > 0 and copied + size > 1048576 then return 'again' end
  copied = copied + size
  attempts = attempts + (not cancelled and ARGV[a + 3] == '1' and 1 or 0)
  local id = string.sub(tag, 1, tonumber(match(rest, '%d+$')))
  local body = call('HGET', C, tag)
  by = by and 'cancelled ' .. by or ''
  local said = ARGV[a + 6] or ''
  if by ~= '' and ARGV[a + 4] == 'cancelled' then
    said = string.gsub(said, '[^\n]$', '%0\n') .. by
  end
  local write = cancelled and letter(id, body, 'cancelled', attempts, '', by, '') or
    letter(id, body, ARGV[a + 4], attempts, ARGV[a + 5], said, ARGV[a + 7])
  -- If Redis refused a command after the letter was written, each new attempt would
  -- write one more letter.  So try the commands here first, where nothing has changed
  -- yet.
  if hooks.leave then hooks.leave({nobody}) end
  call('ZREM', B, nobody)
  call('HDEL', C, nobody)
  call('HDEL', D, nobody)
  local e = redis.pcall(unpack(write))
  if type(e) == 'table' and e.err then later(60) return deferred(e) end
  forget({tag})
  return cancelled and answer or 'ok'
end

local a, answer, batch, others = first, 3, {answer = {}}, {}
local function flush()
  local ok, e = pcall(acks, batch)
  if not ok then
    for _, i in ipairs(batch.answer) do out[i] = 'error ' .. text(e) end
  end
  batch = {answer = {}}
end
while ARGV[a] do
  out[answer] = 'error unknown operation'
  if ARGV[a] == 'ack' then
    batch[#batch + 1], batch.answer[#batch + 1] = a, answer
    if #batch == 50 then flush() end
  else
    others[#others + 1] = {a, answer}
  end
  if not words[ARGV[a]] then break end
  a, answer = a + words[ARGV[a]], answer + 1
end
if #batch > 0 then flush() end
for _, o in ipairs(others) do
  local ok, e = pcall(one, o[1])
  out[o[2]] = ok and e or 'error ' .. text(e)
end
for i = 3, #out do
  if string.find(out[i], '^a') or string.find(out[i], '^e') then over = false end
end
if over then redis.pcall('HDEL', D, '\1' .. instance) end
out[2] = hooks.due and hooks.due() or retries and call('ZRANGE', R, 0, 0, 'WITHSCORES')[2] or ''
return out

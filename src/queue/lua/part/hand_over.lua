-- hand_over: the acks with pushes of settle: pushes messages to lists of other queues, acks, and
-- answers.
-- Needs   settle; targets: how many KEYS stand before those of the lists
--
-- Before a push the script tests whether it could remove it: LTRIM 0 -1 removes nothing.
local gathered, pushed, troubles = {}, {}, {}

-- The reason why the list cannot be pushed to; false: none is known.
local function trouble_of(target)
  if troubles[target] == nil then
    local key = KEYS[targets + math.abs(target)]
    troubles[target] = trouble(redis.pcall('LLEN', key), 'LLEN') or
        trouble(redis.pcall('LTRIM', key, 0, -1), 'LTRIM') or false
  end
  return troubles[target]
end

-- Where ARGV goes on after the messages at a: N, then N times TARGET COUNT MESSAGE ...
local function past(a)
  local n = tonumber(ARGV[a])
  a = a + 1
  for _ = 1, n do a = a + 2 + tonumber(ARGV[a + 1]) end
  return a
end

-- Gathers the messages at a for push_all(); or returns why that cannot be, and gathers nothing.
local function gather(a)
  local last = past(a) - 1
  local at = a + 1
  while at <= last do
    local why = trouble_of(tonumber(ARGV[at]))
    if why then return 'cannot push to ' .. KEYS[targets + math.abs(ARGV[at])] .. ': ' .. why end
    at = at + 2 + tonumber(ARGV[at + 1])
  end
  at = a + 1
  while at <= last do
    local target, count = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
    local list = gathered[target] or {}
    gathered[target] = list
    for i = at + 2, at + 1 + count do list[#list + 1] = ARGV[i] end
    at = at + 2 + count
  end
end

-- Removes what was pushed since keep().
local function undo()
  for target, count in pairs(pushed) do
    local left = target > 0
    call('LTRIM', KEYS[targets + math.abs(target)], left and count or 0, left and -1 or -count - 1)
  end
  pushed = {}
end

local function keep() pushed = {} end

-- Pushes all that was gathered; false: nothing is pushed, because a list has refused it; from now
-- on gather() returns that for this list.
local function push_all()
  local lists = gathered
  gathered = {}
  for target, list in pairs(lists) do
    local push = target > 0 and 'LPUSH' or 'RPUSH'
    for i = 1, #list, 50 do
      local last = math.min(i + 49, #list)
      local why = trouble(redis.pcall(push, KEYS[targets + math.abs(target)], unpack(list, i, last)), push)
      if why then
        troubles[target] = why
        undo()
        return false
      end
      pushed[target] = last
    end
  end
  return true
end

-- Commands that change nothing test all permissions before the first push.  So the acks
-- after the pushes do not fail.
local function prove()
  if hooks.leave then hooks.leave({nobody}, true) end
  call('ZREM', B, nobody)
  if retries then call('ZREM', R, nobody) end
  call('HDEL', D, nobody)
end

-- Hands over at most 50 deliveries; at[i]: where ARGV has the ith.
local function hand_over_some(at)
  local tags, ours, done = {}, {}, {}
  for i, a in ipairs(at) do tags[i] = ARGV[a + 1] end
  local values = call('HMGET', D, unpack(tags))
  local inb = #tags > 8 and call('ZMSCORE', B, unpack(tags))
  prove()
  for i, a in ipairs(at) do
    local tag, tok, answer = tags[i], ARGV[a + 2], at.answer[i]
    local live = inb and inb[i] or not inb and call('ZSCORE', B, tag)
    live = live or retries and call('ZSCORE', R, tag)
    if token(values[i]) ~= tok then
      out[answer] = (values[i] or live) and 'held' or 'gone'
    elseif not live then
      texts = {saved(tag, values[i])}
      forget({tag})
      out[answer] = 'taken'
    else
      ours[#ours + 1] = i
    end
  end
  repeat
    done, texts = {}, {}
    for _, i in ipairs(ours) do
      local why = gather(at[i] + 3)
      out[at.answer[i]] = why and 'error ' .. why or 'ok'
      if not why then
        done[#done + 1] = tags[i]
        texts[#texts + 1] = saved(tags[i], values[i])
      end
    end
  until push_all()
  if #done > 0 then forget(done) end
end

local a, answer, batch = first, 3, {answer = {}}
local function flush()
  local ok, e = try(hand_over_some, batch)
  if ok then
    keep()
  else
    undo()
    for _, i in ipairs(batch.answer) do out[i] = 'error ' .. e end
  end
  batch = {answer = {}}
end
while ARGV[a] do
  batch[#batch + 1], batch.answer[#batch + 1] = a, answer
  if #batch == 50 then flush() end
  a, answer = past(a + 3), answer + 1
end
if #batch > 0 then flush() end
out[2] = hooks.due and hooks.due() or retries and redis.pcall('ZRANGE', R, 0, 0, 'WITHSCORES')[2] or ''
return out

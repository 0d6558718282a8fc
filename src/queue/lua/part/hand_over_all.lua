-- hand_over_all: does acks with pushes one after the other, and answers.
-- Needs   settle_begin, pushes, and what they need; first: where in ARGV the results begin;
--         hooks, as settle_all
--
-- Commands that change nothing test all permissions before the first push.  So the acks
-- after the pushes do not fail.
local function prove()
  if hooks.leave then hooks.leave({nobody}) end
  call('ZREM', B, nobody)
  if retries then call('ZREM', R, nobody) end
  call('HDEL', D, nobody)
end

-- Hands over at most 50 deliveries; at[i]: where ARGV has the ith.
local function hand_over_some(at)
  local tags, ours, done = {}, {}, {}
  for i, a in ipairs(at) do tags[i] = ARGV[a] end
  local values = call('HMGET', D, unpack(tags))
  local inb = #tags > 8 and call('ZMSCORE', B, unpack(tags))
  prove()
  for i, a in ipairs(at) do
    local tag, tok, answer = tags[i], ARGV[a + 1], at.answer[i]
    local live = inb and inb[i] or not inb and call('ZSCORE', B, tag)
    live = live or retries and call('ZSCORE', R, tag)
    if token(values[i]) ~= tok then
      out[answer] = not_ours(values[i] or live, tok)
    elseif not live or hooks.taken and hooks.taken(tag) then
      forget({tag})
      out[answer] = 'taken'
    else
      ours[#ours + 1] = i
    end
  end
  repeat
    done = {}
    for _, i in ipairs(ours) do
      local why = gather(at[i] + 2)
      out[at.answer[i]] = why and 'error ' .. why or 'ok'
      if not why then done[#done + 1] = tags[i] end
    end
  until push_all()
  if #done > 0 then forget(done) end
end

local a, answer, batch = first, 3, {answer = {}}
local function flush()
  local ok, e = pcall(hand_over_some, batch)
  if ok then
    keep()
  else
    undo()
    for _, i in ipairs(batch.answer) do out[i] = 'error ' .. text(e) end
  end
  batch = {answer = {}}
end
while ARGV[a] do
  batch[#batch + 1], batch.answer[#batch + 1] = a, answer
  if #batch == 50 then flush() end
  a, answer = past(a + 2), answer + 1
end
if #batch > 0 then flush() end
out[2] = hooks.due and hooks.due() or retries and call('ZRANGE', R, 0, 0, 'WITHSCORES')[2] or ''
return out

-- settle: writes the results of deliveries.  One call settles many, each independently.
--
-- KEYS    QBACKUP QCONTEXT QRETRY QDELIVERY QDEAD, of a zset or stream Q, with groups QHELD
--         QGROUP QORDER, then the lists that are pushed to, or for "hold" QPAUSED; with "tell"
--         one more list
-- ARGV    dead_max   letters to keep, "0": all
--         host       for the letters
--         tell       who is told of them: see part/letter.lua; "": nobody
--         group      of a stream; with groups: how many messages of one may be in flight
--         then for each result one of
--           "ack" TAG TOKEN
--           "retry" TAG TOKEN DELAY            a failed attempt; due in DELAY seconds
--           "defer" TAG TOKEN DELAY            no attempt is counted; due in DELAY seconds
--           "keep" TAG TOKEN DELAY             as defer; with groups, its group waits for it
--           "return" TAG TOKEN                 as it was; due now
--           "dead" TAG TOKEN FAILED REASON STATUS ERROR ANSWER USAGE
--                                              FAILED "1": counts as an attempt; ANSWER: the
--                                              words of the handler's verdict, or ""; USAGE:
--                                              "CPU MAXRSS" of the run, or ""
--           "stale" TAG TOKEN                  removes what "taken" would, else nothing
--           "save" TAG TOKEN TEXT              no result: its next delivery gets the text;
--                                              "": it gets none
--           "hold" TAG TOKEN DELAY WHY         as defer, and the queue is paused for DELAY,
--                                              unless it is for longer; WHY: for QPAUSED
--         or for each result
--           "push" TAG TOKEN N, then N times TARGET COUNT MESSAGE ...
--                                              an ack that hands messages over; TARGET is
--                                              the number of the list among its KEYS, the
--                                              first one is 1; -1 if the list's left end
--                                              is the oldest.  "grow": the same, where the
--                                              pushes take more memory than the acks free
-- Returns {now, due, answer, ...}; due: first time in QRETRY, "" if empty; an answer is
--         "ok"
--         "not paused: TEXT"  of hold: only the message was deferred; TEXT: why
--         "held"     another delivery has the message, or it waits for one
--         "gone"     the tag is nowhere: it was settled, or Redis has forgotten it; or it
--                    has no payload
--         "taken"    our token, but in neither zset: a foreign consumer
--                    requeued or acked it; the rest of it is removed
--         "cancelled"  instead of retry, defer or return: it was cancelled, and is
--                    removed; "cancelled dead": it is a dead letter, reason "cancelled";
--                    " by WHO" follows if it is known who cancelled it
--         "deferred TEXT"  the letter cannot be written (why); due in 60 s
--         "again"    not done: this call has copied enough payload
--         "error TEXT"     perhaps not done; send it again.  Of a push: not done.  TEXT may
--                    begin with "@user_script:LINE: "
--         Of a zset: due is "0" if an id is due in Q because its run has ended
-- Effect  Acts only if QDELIVERY holds the token.  A retry is in QRETRY before it
--         leaves QBACKUP, a dead letter in QDEAD before the message is removed.
--         It pushes all messages of a result, in their order, and acks it, or does
--         neither.  At maxmemory Redis refuses a call that grows before anything has
--         changed.  An entry of a stream is acknowledged (XACK) when it is done, whoever
--         has it.  An id of a zset that was put off while it ran gets its score back
--         before its tag leaves QBACKUP.
--         With groups, the next held message of the group is due when this one is done; if
--         several may be in flight, also when it is to be tried again later.
-- Again   The second answer is "gone" for an ack or a letter, "held" for a retry, defer
--         or return.  The token is removed last, so a result that failed in the middle
--         is done again, to the same end.
--@ sources list groups zset stream
local B, C, R, D, X, Q = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local call, match = redis.call, string.match
local dead_max, host, tell, first, hooks = ARGV[1], ARGV[2], ARGV[3], 4, {}
--@ for list
local targets = 5
--@ for groups
local H, G, O = KEYS[6], KEYS[7], KEYS[8]
local targets, places = 8, tonumber(ARGV[4])
first = 5
local held = call('ZCARD', H) > 0
--@ for zset stream
local targets = 6
--@ for zset
--@ include unique
-- hooks.leave(tags, done): called before they leave QBACKUP, for QRETRY, or, done, for good.
-- hooks.due(): a time to answer as due; nil for QRETRY's first.
local again = false
call('ZCARD', Q)
hooks.leave = function(tags)
  for _, tag in ipairs(tags) do again = put_back(id_of(tag)) or again end
end
hooks.due = function() return again and '0' or nil end
--@ for stream
local group = ARGV[4]
first = 5
call('XLEN', Q)
--@ include stream_entry
hooks.leave = function(tags, done) if done then acknowledge(tags) end end
--@ end
--@ include full
-- Acknowledgements only free memory: they need no answer.
local acked = first
while ARGV[acked] == 'ack' do
  acked = acked + 3
end
local crammed = ARGV[acked] and is_full(R)
-- Changes nothing, but as the first writing command Redis refuses it at maxmemory.
if ARGV[first] == 'grow' then call('ZADD', R, 'XX', 0, '\0') end
--@ include mark
call('HLEN', D)
local retries = call('ZRANGE', R, 0, 0)[1] ~= nil
local t = call('TIME')
local now = t[1] + t[2] / 1e6
-- Writes nothing, but goes first so that maxmemory does not refuse the later commands.
-- It also shows whether fields of QDELIVERY may be deleted.
local nobody = '\0' .. t[1] .. t[2]
call('HDEL', C, nobody)
if hooks.leave then call('ZREM', B, nobody) end
--@ for groups
local stamp = string.format('%.6f', now)
--@ include groups
if held then permitted() end
call('HDEL', G, nobody)
call('ZREM', O, nobody)
-- hooks.left(tags): they have left QBACKUP and QRETRY.
hooks.left = function(tags) retries = leave_groups(tags, places) or retries end
--@ end
local out = {string.format('%.6f', now), ''}

-- Calls a function as pcall does.  The error of a command that is not permitted has the line of
-- the script in front: Redis before 7.2 does not name the command, the line does.
local function try(f, argument)
  return xpcall(function() return f(argument) end, function(e)
    e = type(e) == 'table' and e.err or tostring(e)
    if not string.find(e, "can't run", 1, true) or string.find(e, '@user_script', 1, true) then return e end
    -- In front of this error's text "error" writes the line that called "call".
    return '@' .. select(2, pcall(error, e, 4))
  end)
end

-- An answer of redis.pcall that is an error: its text, with the name of the command.
local function trouble(answer, command)
  local e = type(answer) == 'table' and answer.err
  return e and (string.find(e, "can't run", 1, true) and command .. ': ' .. e or e)
end

local function token(value)
  return unmark(match(string.sub(value or '', 1, 300), '^%d+ %d+ (%S+)'))
end

-- Texts that handlers have saved for the tags that will be forgotten.
local texts = {}

local function forget_fields(tags)
  if #texts > 0 then call('HDEL', C, unpack(texts)) end
  call('HDEL', C, unpack(tags))
  call('HDEL', D, unpack(tags))
  texts = {}
end

local function forget(tags)
  if hooks.leave then hooks.leave(tags, true) end
  call('ZREM', B, unpack(tags))
  if retries then call('ZREM', R, unpack(tags)) end
  forget_fields(tags)
  if hooks.left then hooks.left(tags) end
end

if ARGV[first] == 'push' or ARGV[first] == 'grow' then
--@ include hand_over
end

-- A message is in flight only for a while, and takes more memory then: the letter is compared with
-- what its message takes where it waits for its first delivery.  An entry of a stream stays there.
--@ for list groups zset
local function frees(message) return #message / 32 end
--@ for stream
local function frees(message) return -#message end
--@ end
--@ include letter
local words = {ack = 3, retry = 4, defer = 4, keep = 4, ['return'] = 3, dead = 9, stale = 3, save = 4, hold = 5}
local copied = 0

-- Acks at most 50 deliveries; at[i]: where ARGV has the ith.
local function acks(at)
  local tags, done = {}, {}
  texts = {}
  for i, a in ipairs(at) do tags[i] = ARGV[a + 1] end
  local values = call('HMGET', D, unpack(tags))
  local inb = #tags > 8 and call('ZMSCORE', B, unpack(tags))
  for i, a in ipairs(at) do
    local tag, answer = tags[i], at.answer[i]
    if token(values[i]) == ARGV[a + 2] then
      done[#done + 1] = tag
      texts[#texts + 1] = saved(tag, values[i])
      if hooks.leave then hooks.leave({tag}, true) end
      local was = inb and inb[i] or not inb and call('ZREM', B, tag) == 1
      was = was or retries and call('ZSCORE', R, tag)
      out[answer] = was and 'ok' or 'taken'
    else
      local live = values[i] or call('ZSCORE', B, tag) or call('ZSCORE', R, tag)
      out[answer] = live and 'held' or 'gone'
    end
  end
  if #done == 0 then return end
  if inb then call('ZREM', B, unpack(done)) end
  if retries then call('ZREM', R, unpack(done)) end
  forget_fields(done)
  if hooks.left then hooks.left(done) end
end

-- Writes the text before the sign of it: a text without the sign counts for nobody.
local function save(tag, value, text)
  if text == '' then
    call('HSET', D, tag, (string.gsub(value, ' 0*(%d+)$', ' %1')))
    call('HDEL', C, tag .. '\0saved')
  else
    call('HSET', C, tag .. '\0saved', text)
    call('HSET', D, tag, (string.gsub(value, ' 0*(%d+)$', ' 0%1')))
  end
  return 'ok'
end

-- Pauses the queue; returns why it cannot, or nil.
local function pause_for(seconds, why)
  local P, ms = KEYS[targets + 1], math.ceil(seconds * 1000)
  local left = redis.pcall('PTTL', P)
  if type(left) ~= 'number' then return trouble(left, 'PTTL') end
  if left == -1 or left >= ms then return end
  return trouble(redis.pcall('SET', P, why, 'PX', ms), 'SET') or nil
end

-- Settles one delivery in any other way.
local function one(a)
  local op, tag = ARGV[a], ARGV[a + 1]
  local value = call('HGET', D, tag)
  local live = call('ZSCORE', B, tag) or call('ZSCORE', R, tag)
  local n, crashes, tok, rest = match(string.sub(value or '', 1, 300), '^(%d+) (%d+) (%S+) (%S+ %d+)$')
  local bare, mark, who, front = unmark(tok)
  if bare ~= ARGV[a + 2] then return (live or value) and 'held' or 'gone' end
  texts = {saved(tag, value)}
  if not live then forget({tag}) return 'taken' end
  if op == 'stale' then return 'held' end
  local size = call('HSTRLEN', C, tag)
  local missing = size == 0 and call('HEXISTS', C, tag) == 0
  if op == 'save' then return missing and 'gone' or save(tag, value, ARGV[a + 3]) end
  -- An ack and a dead letter end a cancelled message anyway; any other result would
  -- deliver it again.
  local cancelled = mark and op ~= 'dead'
  local by = mark and who ~= '' and 'by ' .. who
  local answer = (mark == 'drop' or missing) and 'cancelled' or 'cancelled dead'
  if by then answer = answer .. ' ' .. by end
  if cancelled and (mark == 'drop' or missing) then forget({tag}) return answer end
  if missing then forget({tag}) return 'gone' end
  local attempts = math.min(tonumber(n), 999999998)
  local unpaused
  local function later(delay)
    -- They change nothing: if an ACL denies one, that must happen before the first
    -- change.
    call('ZREM', B, nobody)
    call('HSET', D, tag, value)
    if op == 'hold' and not cancelled then
      call('ZADD', R, 'XX', 0, nobody)
      unpaused = pause_for(delay, ARGV[a + 4])
    end
    call('ZADD', R, string.format('%.6f', now + delay), tag)
    retries = true
    if hooks.leave then hooks.leave({tag}) end
    call('ZREM', B, tag)
    call('HSET', D, tag, attempts .. ' ' .. crashes .. ' ' .. (front or '') .. '- ' .. rest)
--@ for groups
    if op ~= 'return' and op ~= 'keep' and places > 1 then hooks.left({tag}) end
--@ end
  end
  if op ~= 'dead' and not cancelled then
    attempts = attempts + (op == 'retry' and 1 or 0)
    later(op ~= 'return' and tonumber(ARGV[a + 3]) or 0)
    return unpaused and 'not paused: ' .. unpaused or 'ok'
  end
  -- Messages that are told must be encoded: that takes longer.
  if copied > 0 and copied + size > (told > 0 and told or 1048576) then return 'again' end
  copied = copied + size
  attempts = attempts + (not cancelled and ARGV[a + 3] == '1' and 1 or 0)
  local id = string.sub(tag, 1, tonumber(match(rest, '%d+$')))
  local body = call('HGET', C, tag)
  by = by and 'cancelled ' .. by or ''
  local said = ARGV[a + 6] or ''
  if by ~= '' and ARGV[a + 4] == 'cancelled' then
    said = string.gsub(said, '[^\n]$', '%0\n') .. by
  end
  local kept = texts[1] and call('HGET', C, texts[1])
  -- If Redis refused a command after the letter was written, each new attempt would
  -- write one more letter.  So try the commands here first, where nothing has changed
  -- yet.
  if hooks.leave then hooks.leave({nobody}, true) end
--@ for zset
  call('ZADD', Q, 'XX', 0, nobody)
--@ end
  call('ZREM', B, nobody)
  call('HDEL', C, nobody)
  call('HDEL', D, nobody)
  local why
  if cancelled then
    why = letter(id, body, 'cancelled', attempts, '', by, '', nil, kept)
  else
    why = letter(id, body, ARGV[a + 4], attempts, ARGV[a + 5], said, ARGV[a + 7], ARGV[a + 8], kept)
  end
  if why then later(60) return 'deferred ' .. why end
  forget({tag})
  return cancelled and answer or 'ok'
end

local a, answer, batch, others = first, 3, {answer = {}}, {}
local function flush()
  local ok, e = try(acks, batch)
  if not ok then
    for _, i in ipairs(batch.answer) do out[i] = 'error ' .. e end
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
-- A result must not be written without the text before it.
local unsaved = {}
for _, o in ipairs(others) do
  local op, tag = ARGV[o[1]], ARGV[o[1] + 1]
  local ok, e = not unsaved[tag], unsaved[tag]
  if ok then ok, e = try(one, o[1]) end
  if not ok and op == 'save' then unsaved[tag] = e end
  out[o[2]] = ok and e or 'error ' .. e
end
out[2] = hooks.due and hooks.due() or retries and redis.pcall('ZRANGE', R, 0, 0, 'WITHSCORES')[2] or ''
return out

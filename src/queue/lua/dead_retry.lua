-- dead_retry: makes messages of dead letters again, due now.
--
-- KEYS    QBACKUP QCONTEXT QRETRY QDELIVERY QDEAD; of a zset Q QDEAD QBACKUP QCONTEXT QRETRY
--         QDELIVERY
-- ARGV    maxbytes   of letters per call, plus 64 bytes for each name and value;
--                    one letter is always done
--         letter ... their ids in QDEAD
-- Returns {done, moved}: how many of ARGV's letters this call has handled, in their
--         order, and how many of these existed
-- Effect  Each message is in QCONTEXT, QDELIVERY and QRETRY, due now in the order of ARGV, no
--         attempts, before its letter is deleted.  Its tag is its id, followed by
--         #letter until no live message has it, or could be held under it (see
--         part/pop_groups.lua): letters of two queues may have one number.  It has the
--         saved text of its letter again.  Of a zset each id is in Q, due now, or before, if
--         it was; with a saved text in QRETRY, as a retry, unless it is there or runs: then
--         the text is dropped.  A letter without message stays.
--         While Redis is full, an error if that many retries wait already.
-- Again   Safe to repeat: it passes over a letter that is gone, and queues an id once.
--@ sources list zset
local call, room = redis.call, tonumber(ARGV[1])
local t = call('TIME')
local now = string.format('%.6f', t[1] + t[2] / 1e6)
local done, moved, bytes = 0, 0, 0
-- The commands that change nothing go first so that maxmemory refuses none of the later
-- ones, and so that a missing permission shows before the first change.
--@ for list
local B, C, R, D, X = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
call('HLEN', C)
call('HLEN', D)
call('XLEN', X)
local retries = call('ZCARD', R)
--@ include full
local crammed = is_full(R)
call('ZREMRANGEBYRANK', B, 1, 0)
call('ZADD', R, 'XX', 0, '\0' .. now)

local function put(letter, id, body, saved)
  if not id or #id < 1 or #id > 200 or string.find(id, '[%z\1-\31\127]') then id = '~' .. letter end
  local tag = id
  while string.find(tag, '%.h%d+$') or call('ZSCORE', B, tag) or call('ZSCORE', R, tag) do
    tag = tag .. '#' .. letter
  end
  call('HSET', C, tag, body)
  if saved then
    call('HSET', C, tag .. '\0saved', saved)
  else
    redis.pcall('HDEL', C, tag .. '\0saved')
  end
  call('HSET', D, tag, '0 0 - ' .. now .. (saved and ' 0' or ' ') .. #id)
  call('ZADD', R, string.format('%.6f', now + (moved - #ARGV) * 1e-6), tag)
end
--@ for zset
local Q, X, B, C, R, D = unpack(KEYS)
--@ include unique
call('XLEN', X)
call('ZREMRANGEBYRANK', Q, 1, 0)
call('ZADD', Q, 'XX', 0, '\0' .. now)

local function put(_, _, id, saved)
  local tag = saved and tag_of(id)
  if not tag or call('ZSCORE', B, tag) or call('ZSCORE', R, tag) then
    call('ZADD', Q, 'LT', now, id)
    return
  end
  call('HSET', C, tag, id, tag .. '\0saved', saved)
  call('HSET', D, tag, '0 0 - ' .. now .. ' 0' .. #tag)
  call('ZADD', R, now, tag)
end
--@ end
call('XDEL', X, '0-0')

for i = 2, #ARGV do
  local letter, id, body, saved = ARGV[i], nil, nil, nil
  if bytes > room then break end
  local e = call('XRANGE', X, letter, letter)[1]
  for k = 1, e and #e[2] or 0, 2 do
    bytes = bytes + #e[2][k] + #e[2][k + 1] + 128
    if e[2][k] == 'id' then id = e[2][k + 1] end
    if e[2][k] == 'message' then body = e[2][k + 1] end
    if e[2][k] == 'saved' and #e[2][k + 1] <= 4096 then saved = e[2][k + 1] end
  end
  if body then
    if moved > 0 and bytes > room then break end
--@ for list
    -- A retry takes more memory than its letter.
    if crammed and retries + moved >= MANY then
      if moved > 0 then break end
      return redis.error_reply('OOM Redis is full (maxmemory), and has ' ..
          MANY .. ' retries of this queue')
    end
--@ end
    put(letter, id, body, saved)
    call('XDEL', X, letter)
    moved = moved + 1
  end
  done = done + 1
end
return {done, moved}

-- pop: leases due retries and waiting messages to the caller.
--
-- KEYS    Q QBACKUP QCONTEXT QRETRY QDELIVERY QPAUSED QRATE QSTATS; with groups also QHELD
--         QGROUP QORDER
-- ARGV    n          messages wanted, >= 1
--         maxbytes   payload per call; the last message may go beyond
--         max        of a longer payload only the length is sent,
--         crashes    and of a message with more of them
--         call       INSTANCE.NUMBER, unique in the fleet; tokens are CALL.1 CALL.2 ...
--         deadline   Redis seconds; after it nothing is done ("0": none)
--         fleet      how many may be in flight at once, all daemons; "0": any
--         gap        seconds between two messages of the fleet's rate; "0": no rate
--         slack      seconds that one may come before its time
--         turn       which messages come first.  "retry": due retries, the longest due
--                    first; "new": waiting messages, the oldest first.  Each sort gets
--                    its share of n; if one has too few, the other fills the rest.
--                    "due": all due retries, then waiting messages.  For a probe, with
--                    n = 1: "newest": the newest waiting message; "fewest": the due
--                    retry with the fewest attempts.  ROOM EACH may follow: a message
--                    takes 1 of the room, one that has failed before takes EACH
--         end        of a list: "left": producers push right, so the left end is the oldest
--         member     of a message of a list that is its id, as "id"
--         by places  with groups: the member that names the group, or "/"; how many messages
--                    of a group may be in flight at once
--         group      of a stream: made at its beginning if it is missing
--         consumer   the caller's name in it
-- Returns {status, now, waiting, due, dropped, limited, taken, then for each message:
--         tag, idlen, token, attempts, crashes, payload}
--         status "ok", or "late" (after its deadline), or "paused" (then: why, its TTL
--         in ms or -1);
--         due: first time in QRETRY, "" if empty; idlen: length of the id in
--         the tag; limited: "", or the limit that held messages back: "fleet", "memory" (Redis
--         is full), "held" (the oldest of the list waits for its group, and may not be held),
--         or the seconds until the rate allows one; taken: how many the fleet has taken from Q
--         so far, -1 if this pop has not counted; payload: an integer (its length) if it
--         is not sent; {payload, text} if an earlier delivery has saved a text.
--         Of a stream, waiting is 0 if the group is at its end, else 1; of a zset, the
--         payload is the id
-- Effect  Each message leaves QRETRY or Q for QBACKUP, QDELIVERY, QCONTEXT.  It
--         leaves its source last, so an error in the middle leaves a message
--         twice, never nowhere; QBACKUP without QCONTEXT is dropped by tick.
--         A retry that was cancelled comes with its mark before the token (see
--         part/mark.lua), and keeps it: the caller settles it and does not run it.
--         QSTATS counts messages taken from the oldest end of Q, last of all.
--         With groups, a message that may not start is held (see part/groups.lua), at most
--         500 in one call; "newest" is "new".
--         A retry without payload is dropped and counted.  A retry whose token
--         is not "-" expired there: crashes + 1.
-- Again   A second call pops other messages.  After a lost reply, reclaim makes those
--         due that the call has taken.
--@ sources list names groups zset stream
local Q, B, C, R, D, P, K, S = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8]
--@ include mark
local call, find, match, sub = redis.call, string.find, string.match, string.sub
local n, room, max, most = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local name, deadline = ARGV[5] .. '.', tonumber(ARGV[6])
local nobody = '\0' .. name

local t = call('TIME')
local now = t[1] + t[2] / 1e6
local stamp = string.format('%.6f', now)
local first = call('ZRANGE', R, 0, 0, 'WITHSCORES')[2]
call('HLEN', C)
--@ include pause
--@ for list names groups
local waiting = call('LLEN', Q)
--@ for zset
--@ include soonest
--@ include unique
local waiting = due_by(Q, now)
--@ for groups
local H, G, O = KEYS[9], KEYS[10], KEYS[11]
local by, places = ARGV[13], tonumber(ARGV[14])
local held_before = call('ZCARD', H)
local any_held = held_before > 0
--@ include groups
--@ include places
--@ for stream
local group, consumer = ARGV[11], ARGV[12]
--@ include stream_new
--@ include stream_message
-- Without limits of the fleet, the reads below tell the same at no extra cost.
local waiting = (tonumber(ARGV[7]) > 0 or tonumber(ARGV[8]) > 0) and unread() or 1

-- Reads the entries after an id; ">" stands for those that the group has not been given
-- yet.
local function xread(after)
  local found = redis.pcall('XREADGROUP', 'GROUP', group, consumer, 'COUNT', 1, 'STREAMS', Q, after)
  if found and found.err then
    if find(found.err, 'NOGROUP', 1, true) then
      call('XGROUP', 'CREATE', Q, group, '0', 'MKSTREAM')
    end
    found = call('XREADGROUP', 'GROUP', group, consumer, 'COUNT', 1, 'STREAMS', Q, after)
  end
  return found
end
--@ end

-- The gate: the last part that only reads.
-- A rate is kept as the time of the next message if all came evenly, gap seconds apart
-- (tat, as in GCRA).  A message may come up to slack seconds before its time.  A tat
-- that is farther ahead than any message could have set it comes from another rate, or
-- another clock: one message may come, and sets it anew.
local why, ttl = pause()
if why then return {'paused', stamp, waiting, first or '', 0, '', -1, why, ttl} end
if deadline > 0 and now > deadline then
  return {'late', stamp, waiting, first or '', 0, '', -1}
end
if waiting == 0 and not (first and tonumber(first) <= now) then
  return {'ok', stamp, 0, first or '', 0, '', -1}
end

local fleet, gap, slack = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local limit, tat = '', now
if fleet > 0 then
  local free = math.max(fleet - call('ZCARD', B), 0)
  if free < n then n, limit = free, 'fleet' end
end
if gap > 0 then
  local kept = tonumber(call('GETRANGE', K, 0, 99)) or 0
  if kept > now + slack + gap + 0.001 then
    tat = now + slack
  elseif kept > now then
    tat = kept
  end
  local free = math.max(math.floor((now + slack - tat) / gap) + 1, 0)
  if free < n then n, limit = free, 'rate' end
end
local function limited()
  if limit ~= 'rate' then return limit end
  return string.format('%.6f', math.max(tat - slack - now, 0))
end
if n == 0 then return {'ok', stamp, waiting, first or '', 0, limited(), -1} end

-- due: there may be due retries that this call has not looked at.  passed: how many it
-- has passed over, because they have failed and there was no room for that.  left: the rest of
-- the room; each: the room that a message takes which has failed.
local looked, due, passed = 0, first ~= nil and tonumber(first) <= now, 0
local left, each = match(ARGV[10], ' (%d+) (%d+)$')
left, each = tonumber(left or math.huge), tonumber(each or 1)

-- Each of these commands will follow, and changes nothing now.  At maxmemory Redis refuses
-- the first one, which is no error, and not the second one; after it Redis refuses none.  So
-- only a missing permission can end the script from here on, and it does so here.  After the first
-- real write it would leave a message twice, and once more with each pop.  HSET cannot
-- be tested: it is the first real write.
--@ include full
local crammed = is_full(B)
if due then
  call('ZREM', R, nobody)
  call('HDEL', D, nobody)
  call('HGET', D, nobody)
  call('HSTRLEN', C, nobody)
end
--@ for list names groups
if waiting > 0 then call('LTRIM', Q, 0, -1) end
if waiting > 0 and due then
  call('LINDEX', Q, -1)
  call('ZMSCORE', B, nobody)
end
--@ for groups
permitted()
if due or any_held then
  call('HDEL', D, nobody)
  call('HDEL', C, nobody)
end
--@ for zset
call('ZREM', Q, nobody)
call('ZMSCORE', B, nobody)
--@ for stream
-- Writes a field and deletes it: an entry that was read must be leased, so a missing
-- permission must show before.
call('ZMSCORE', B, nobody)
call('HDEL', D, nobody)
call('HSET', D, nobody, '')
call('HDEL', D, nobody)
if due then xread('18446744073709551615-18446744073709551614') end
call('XACK', Q, group, '0-0')
--@ end
-- Writes the rate as if all n came; it is written again when the number is known.
local function save_rate(messages)
  local ahead = tat + messages * gap
  return string.format('%.6f', ahead), 'PX', math.ceil((ahead - now) * 1000) + 1000
end
if gap > 0 then call('SET', K, save_rate(n)) end
local out, got, bytes, dropped, full = {'ok', stamp, 0, '', 0, '', -1}, 0, 0, 0, false

-- Faster than '..', which makes text of a number as of a fraction, at the cost of a
-- small command.
local function text(number) return string.format('%d', number) end

local function give(tag, idlen, token, attempts, crashes, body)
  local o = #out
  out[o + 1], out[o + 2], out[o + 3] = tag, idlen, token
  out[o + 4], out[o + 5], out[o + 6] = attempts, crashes, body
end

-- Redis keeps small zsets and hashes as lists.  It searches them from end to end, and
-- reads each score from text.  That is best for a few entries, but most of the cost of
-- a batch.  A name that is too long for such a list makes Redis use an index instead;
-- it is deleted at once.  No tag has a NUL.
local indexed = false
local function lease(zadd, hset, copy)
  local long = not indexed and #zadd >= 16 and string.rep('\0', 65)
  if long then
    indexed = true
    zadd[#zadd + 1], zadd[#zadd + 2] = zadd[1], zadd[2]
    zadd[1], zadd[2] = stamp, long
    hset[#hset + 1], hset[#hset + 2] = long, ''
    copy[#copy + 1], copy[#copy + 2] = long, ''
    call('ZREM', B, nobody)
    call('HDEL', D, nobody)
  end
  local new = call('HSET', D, unpack(hset))
  if long then call('HDEL', D, long) end
  new = new + call('HSET', C, unpack(copy))
  if long then call('HDEL', C, long) end
  call('ZADD', B, unpack(zadd))
  if long then call('ZREM', B, long) end
  return new < #hset
end

--@ for stream
-- Whether the entry of a message has more fields than can become JSON.  QCONTEXT has them a line
-- each; only many lines are worth a look at the entry.
local function has_too_many_fields(tag, body)
  if #body < 2001 or select(2, string.gsub(body, '\n', '')) < 2001 then return false end
  local id = match(tag, '^%d+%-%d+')
  local e = id and call('XRANGE', Q, id, id)[1]
  if not e then return false end
  local text, _, large = message(e[2], max)
  return large and text == body
end
--@ end

-- What give() says of the payload, and the length of the id as QDELIVERY has it: with the text
-- that an earlier delivery has saved, if there is one.
local function with_text(tag, value, body, idlen)
  local field = saved(tag, value)
  -- Without a field in QDELIVERY a text belongs to nobody.
  if value == '' then redis.pcall('HDEL', C, tag .. '\0saved') end
  if not field then return body, text(idlen) end
  local kept = type(body) == 'string' and call('HGET', C, field)
  bytes = bytes + #(kept or '')
  return kept and {body, kept} or body, '0' .. text(idlen)
end

--@ for list groups
--@ include ident
--@ for groups
--@ include pop_groups
--@ end

-- Leases these due retries, as far as there is room.  values: their fields in
-- QDELIVERY.
local function take(tags, values)
  local zadd, hset, back, leave, gone = {}, {}, {}, {}, {}
--@ for groups
  -- One that has no place yet is to get one: it was delayed, replayed, or has lost its place.
  local own, starts, old = call('HMGET', G, unpack(tags)), {}, {}
--@ end
  for i, tag in ipairs(tags) do
    local a, c, tok, l = match(values[i], '^(%d+) (%d+) (%S+) %S+ (%d+)$')
--@ for groups
    l = l or #(match(tag, '^(.*)#[^#]*%.h%d+$') or tag)
--@ end
    local attempts = math.min(tonumber(a) or 0, 999999999)
    local bare, mark, _, front = unmark(tok or '-')
    local crashes = math.min(tonumber(c) or 0, 999999999) + (bare ~= '-' and 1 or 0)
    local failed = attempts + crashes > 0 and not mark
    local pass = failed and left < each
    local size = pass and 0 or call('HSTRLEN', C, tag)
    if got > 0 and bytes + size > room or left < 1 then full = true break end
    local body = not pass and ((size > max or crashes > most) and size or call('HGET', C, tag))
    looked = looked + 1
--@ for stream
    if type(body) == 'string' and has_too_many_fields(tag, body) then body = math.max(#body, max + 1) end
--@ end
    if pass then
      passed = passed + 1
    elseif not body then
      leave[#leave + 1], gone[#gone + 1] = tag, tag
    else
--@ for groups
      local id, group = sub(tag, 1, tonumber(l) or -1), nil
      if not own[i] and not mark and type(body) == 'string' then group = group_of(body, id) end
      if group == false or work > 2500 or aside > 0 and (aside == 500 or bytes + size > room) then full = true break end
      -- It may have held its group until now: others have places again.
      if own[i] and any_held and places > 1 then group_now(own[i]) end
      if enters(group) then
        starts[i] = group
      elseif crammed then
        -- It would take more memory where it is held.
        passed, body = passed + 1, nil
      else
        local field = saved(tag, values[i])
        local kept = field and call('HGET', C, field)
        bytes, body = bytes + size + #(kept or ''), put_aside(id, attempts, crashes, body, group, kept)
        leave[#leave + 1], old[#old + 1], old[#old + 2] = tag, tag, tag .. '\0saved'
      end
    end
    if body then
--@ end
      leave[#leave + 1] = tag
      left = left - (failed and each or 1)
      local idlen = math.min(tonumber(l) or #tag, #tag)
      got, bytes = got + 1, bytes + size
      if not mark then back[#back + 1] = tag end
      if #tag > 300 then bytes = bytes + #tag end
      local token = (front or '') .. name .. text(got)
      zadd[#zadd + 1], zadd[#zadd + 2] = stamp, tag
      local whole, length = with_text(tag, values[i], body, idlen)
      hset[#hset + 1], hset[#hset + 2] = tag, attempts .. ' ' .. crashes .. ' ' .. token .. ' ' .. stamp .. ' ' .. length
      give(tag, idlen, token, attempts, crashes, whole)
    end
  end
  if #leave == 0 then return end
--@ for groups
  hold()
  take_places(tags, starts)
--@ end
  if #zadd > 0 then
    call('HSET', D, unpack(hset))
    call('ZADD', B, unpack(zadd))
--@ for zset
    -- They leave Q, too, before they leave QRETRY, unless they are cancelled.
    local ids = {}
    for i, tag in ipairs(back) do ids[i] = id_of(tag) end
    if #ids > 0 then call('ZREM', Q, unpack(ids)) end
--@ end
  end
  call('ZREM', R, unpack(leave))
--@ for groups
  if #old > 0 then
    call('HDEL', C, unpack(old))
    call('HDEL', D, unpack(old))
  end
--@ end
  if #gone > 0 then
    dropped = dropped + #gone
    call('HDEL', D, unpack(gone))
    for _, tag in ipairs(gone) do redis.pcall('HDEL', C, tag .. '\0saved') end
--@ for groups
    leave_groups(gone, places)
    groups_now = {}
--@ end
  end
end

-- Reads the next `count` due tags and their fields of QDELIVERY; fewer if this pop has
-- read many bytes of them.  Reads them one by one: both could be of any size.
local size = 0
local function next_due(count)
  local tags, values = {}, {}
  while #tags < count and size <= 65536 do
    local rank = passed + #tags
    local e = call('ZRANGE', R, rank, rank, 'WITHSCORES')
    if not e[2] or tonumber(e[2]) > now then break end
    local value = call('HGET', D, e[1]) or ''
    size = size + #e[1] + #value
    tags[#tags + 1], values[#values + 1] = e[1], #value <= 300 and value or ''
  end
  return tags, values
end

local function retries(enough)
  while due and got < enough and not full and looked < n + 100 do
    local tags, values = next_due(math.min(enough - got, 25))
    due = #tags > 0
    if due then take(tags, values) end
  end
end

local function fewest()
  if not due or got >= n then return end
  local tags, values = next_due(50)
  if #tags == 0 then return end
  local best, least
  for i in ipairs(tags) do
    local attempts = tonumber(match(values[i], '^%d+')) or 0
    if not least or attempts < least then best, least = i, attempts end
  end
  take({tags[best]}, {values[best]})
end

-- fresh(enough, newest) leases new messages until got is enough.
--@ for names
-- The message is the name of a key, and that is its id, if it can be one.
local function ident(s)
  return #s >= 1 and #s <= 200 and not find(s, '[%z\1-\31\127]') and s or nil
end
--@ for list names
--@ include pop_list
--@ for zset
--@ include pop_zset
--@ for stream
--@ include pop_stream
--@ end

-- A message takes more memory when it has left its source.  So while Redis is full a queue takes
-- new ones only up to MANY.  As that many retries may wait for hours, it then tries one every 5 s,
-- and twice as many at once if none of those before has become a retry: the field "crammed" of
-- QSTATS has the time, how many they were, and how many were in flight or retries.
local spare, tried, many, new = math.huge, nil, 0, 0
if crammed then
  many = call('ZCARD', B) + call('ZCARD', R)
  spare = MANY - many
  if spare < 1 then
    local value = redis.pcall('HGET', S, 'crammed')
    local last, count, before = match(type(value) == 'string' and value or '', '^(%d+%.%d+) (%d+) (%d+)$')
    last = tonumber(last)
    if last and many <= tonumber(before) then
      tried = math.min(2 * count, 32)
    elseif not last or last > now or now - last >= 5 then
      tried = 1
    end
    spare = tried or 0
  end
--@ for stream
  -- These are copied.
  room = math.min(room, 65536)
--@ end
  local take_fresh = fresh
  fresh = function(enough, newest)
    local before = got
    if spare > 0 then take_fresh(math.min(enough, got + spare), newest) end
    spare = spare - (got - before)
    new = new + got - before
  end
end

-- Due retries and new messages take turns, so that neither can starve the other.  ARGV says
-- which sort comes first.  That sort gets half of n, rounded up, and the other one the rest.
-- If one has too few, the other fills up.  "due" gives retries all of n.
local turn, half = match(ARGV[10], '^%a+'), math.ceil(n / 2)
if turn == 'new' then
  fresh(half)
elseif turn == 'newest' then
  fresh(half, true)
elseif turn == 'fewest' then
  fewest()
elseif turn == 'due' then
  retries(n)
else
  retries(half)
end
if turn == 'new' then
  retries(n)
elseif turn == 'newest' then
  fewest()
end
fresh(n)
retries(n)

--@ for list names groups
waiting = waiting - took
-- The fleet's total, for the estimate of how long messages wait (src/policy/waited.h).  What a
-- probe takes at the newest end is not counted, as if it had not arrived.
if counted > 0 then
  local taken = redis.pcall('HINCRBY', S, 'taken', counted)
  if type(taken) == 'number' then out[7] = taken end
end
--@ for zset
waiting = due_by(Q, now)
--@ end
if gap > 0 then
  if got < n then redis.pcall('SET', K, save_rate(got)) end
  tat = tat + got * gap
end
out[3] = waiting
--@ for groups
first = first or promoted_any
--@ end
out[4] = first and call('ZRANGE', R, 0, 0, 'WITHSCORES')[2] or ''
-- Only messages that were passed over are due: the caller must not pop again at once.
if passed > 0 and got == 0 then out[4] = string.format('%.6f', now + 0.1) end
out[5] = dropped
out[6] = got == n and limited() or ''
if tried and new > 0 then redis.pcall('HSET', S, 'crammed', stamp .. ' ' .. new .. ' ' .. many) end
if spare < 1 and got < n and not full then out[6] = 'memory' end
--@ for groups
if blocked and got < n then out[6] = 'held' end
--@ end
return out

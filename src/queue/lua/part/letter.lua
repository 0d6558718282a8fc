-- letter: makes a dead letter, and announces it in the list of another queue.
-- Needs   call; X: QDEAD; dead_max: letters to keep, "0": all; host; tell: "", or
--         "COMMAND:WHOLE:QUEUE": the last of KEYS is a list, which COMMAND pushes to, the queue is named
--         QUEUE, and if WHOLE is "1" the message is told, too.
--         crammed: whether Redis is full (see part/full.lua), and then frees(message): by how many
--         bytes letter and announcement may be larger than the message.
--         Before letter() a command must have had an effect, or tested that it may have one
-- Gives   letter(id, message, reason, attempts, status, error, answer, usage, saved): writes it,
--         without an empty answer; usage: "CPU MAXRSS", "" or nil; saved: a text, or nil or false;
--         why it was not written, or nil.  told: bytes of a message that are told
--
-- While Redis is full, the announcement has no message, and the error is cut to the room that there
-- is, but not below LEAST bytes.  Where that is too much, letters may add SLOW bytes a second, by
-- the time of the newest; or a letter replaces an old one.
--
-- Only the first letter of a call drops old ones: after dead_max was lowered they may be
-- very many.  500 are more than a call writes.
local push, whole, from_queue = string.match(tell or '', '^(%u+):(%d):(.*)$')
local told = whole == '1' and not crammed and 32768 or 0
local LEAST, SLOW = 100, 100
local most_letters = tonumber(dead_max)

-- How many bytes of an error there is room for; nil: no letter may be written.  rest: bytes of the
-- letter besides message and error.
local function room_for_error(message, rest)
  local room = frees(message) - rest
  if push then room = (room - rest) / 2 end
  if room >= LEAST then return math.floor(room) end
  if not push and most_letters > 0 and call('XLEN', X) >= most_letters then return LEAST end
  local t = call('TIME')
  local since = t[1] * 1000 + t[2] / 1000 - (LEAST - room) * 1000 / SLOW
  if #call('XRANGE', X, string.format('%.0f', math.max(since, 0)), '+', 'COUNT', 1) > 0 then return nil end
  return LEAST
end

local function is_utf8(s)
  for _, p in ipairs(string.find(s, '[\128-\255]') and {'[\194-\223][\128-\191]',
      '\224[\160-\191][\128-\191]', '[\225-\236\238\239][\128-\191][\128-\191]',
      '\237[\128-\159][\128-\191]', '\240[\144-\191][\128-\191][\128-\191]',
      '[\241-\243][\128-\191][\128-\191][\128-\191]', '\244[\128-\143][\128-\191][\128-\191]'} or {}) do
    -- A character in its place, so that bytes beside it stay apart.
    s = string.gsub(s, p, '.')
  end
  return not string.find(s, '[\128-\255]')
end

-- Of two characters at a time: a table of them, made once, takes less time than arithmetic.
local two = {}
local function base64(s)
  local digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
  local out = {}
  for i = 0, two[0] and -1 or 4095 do
    local high, low = math.floor(i / 64) + 1, i % 64 + 1
    two[i] = string.sub(digits, high, high) .. string.sub(digits, low, low)
  end
  for i = 1, #s, 3 do
    local a, b, c = string.byte(s, i, i + 2)
    local n = a * 65536 + (b or 0) * 256 + (c or 0)
    local low = n % 4096
    out[#out + 1] = two[(n - low) / 4096]
    out[#out + 1] = c and two[low] or b and string.sub(two[low], 1, 1) .. '=' or '=='
  end
  return table.concat(out)
end

-- The id is the first member, where pop.lua finds it soonest.
local function announcement(number, id, message, reason, attempts, status, error, answer)
  local json = {}
  local function add(name, value)
    if type(value) == 'string' and not is_utf8(value) then value = string.gsub(value, '[\128-\255]', '?') end
    json[#json + 1] = '"' .. name .. '":' .. cjson.encode(value)
  end
  add('id', id)
  add('queue', from_queue)
  -- Of a queue with shards: which one has the letter.
  add('key', (string.gsub(X, 'DEAD$', '')))
  add('letter', number)
  add('reason', reason)
  add('attempts', tonumber(attempts))
  add('status', status)
  -- A part may begin or end within a character.
  add('error', #error > 1024 and string.gsub(string.sub(error, -1024), '^[\128-\191]+', '') or error)
  if #answer > 1024 then answer = string.gsub(string.sub(answer, 1, 1024), '[\192-\255][\128-\191]*$', '') end
  if answer ~= '' then add('answer', answer) end
  add('host', host)
  if told > 0 and #message <= told then
    local text = is_utf8(message)
    add(text and 'message' or 'message_base64', text and message or base64(message))
  end
  return '{' .. table.concat(json, ',') .. '}'
end

local function letter(id, message, reason, attempts, status, error, answer, usage, saved)
  local list = push and KEYS[#KEYS]
  -- Redis before 7.2 does not say which command is not permitted.
  local function refusal(r, command, what)
    local e = type(r) == 'table' and r.err
    return e and (what or '') .. (string.find(e, "can't run", 1, true) and command .. ': ' or '') .. e
  end
  local what = list and 'cannot push to ' .. list .. ': '
  local there = list and redis.pcall('EXISTS', X)
  local why = list and (refusal(redis.pcall('LLEN', list), 'LLEN', what) or
    refusal(redis.pcall('XDEL', X, '0-0'), 'XDEL') or refusal(there, 'EXISTS'))
  if why then return why end

  if crammed then
    answer = string.sub(answer, 1, LEAST)
    local room = room_for_error(message, 200 + #id + #host + #answer + #(saved or ''))
    if not room then return 'OOM Redis is full (maxmemory), and the dead letter needs more than its message frees' end
    error = string.sub(error, -room)
  end
  local words = {'XADD', X, 'MAXLEN', '~', dead_max, 'LIMIT', '500'}
  if dead_max == '0' then words = {'XADD', X} end
  dead_max = '0'
  for _, w in ipairs({'*', 'id', id, 'message', message, 'reason', reason, 'attempts', attempts,
      'status', status, 'error', error, 'host', host}) do
    words[#words + 1] = w
  end
  if answer ~= '' then
    words[#words + 1] = 'answer'
    words[#words + 1] = answer
  end
  local cpu, maxrss = string.match(usage or '', '^(%S+) (%S+)$')
  for _, w in ipairs(cpu and {'cpu', cpu, 'maxrss', maxrss} or {}) do words[#words + 1] = w end
  for _, w in ipairs(saved and {'saved', saved} or {}) do words[#words + 1] = w end
  local number = redis.pcall(unpack(words))
  why = refusal(number, 'XADD')
  if list and not why then
    why = refusal(redis.pcall(push, list, announcement(number, id, message, reason, attempts, status, error,
      answer)), push, what)
    if why then call('XDEL', X, number) end
    if why and there == 0 then redis.pcall('DEL', X) end
  end
  return why
end

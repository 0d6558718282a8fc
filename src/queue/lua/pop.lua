-- pop: leases due retries, then waiting messages, to the caller.
--
-- KEYS    Q QBACKUP QCONTEXT QRETRY QDELIVERY QPAUSED QRATE
-- ARGV    n          messages wanted, >= 1
--         maxbytes   payload per call; one message is always taken
--         max        a longer payload is not sent: its length is
--         call       unique in the fleet and per call; tokens are CALL.1 CALL.2 ...
--         deadline   Redis seconds; after it nothing is done ("0": none)
--         fleet      how many may be in hand at once, all daemons; "0": any
--         gap        seconds between two messages of the fleet's rate; "0": no rate
--         slack      seconds that one may come before its time
-- Returns {status, now, waiting, due, dropped, limited, then for each message:
--         tag, length of the id in it, token, attempts, crashes, payload}
--         status "ok", or "late", or "paused" (then: why, its TTL in ms or -1);
--         due: first time in QRETRY, "" if empty; limited: "" or why not
--         more came: "fleet", or the seconds until the rate allows one; payload:
--         an integer (its length) where it is longer than max.
-- Effect  Each message leaves QRETRY or Q for QBACKUP, QDELIVERY, QCONTEXT.  It
--         leaves its source last, so an error in the middle leaves a message
--         twice, never nowhere; QBACKUP without QCONTEXT is dropped by tick.
--         A retry without payload is dropped and counted.  A retry whose token
--         is not "-" expired there: crashes + 1.
-- Again   A second call pops other messages; what a call whose reply was
--         lost has taken, mine tells.
--
-- The id is the first-level member "id" of a JSON object of at most 64 KiB
-- without NUL: a string's text, or an integer's digits; the last one wins; 1
-- to 200 bytes, no control characters.  Otherwise "~" and the token.  The tag
-- is the id, or id#token where the id is in QBACKUP or QRETRY.
local Q, B, C, R, D, P, K = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
--@ include pop_begin
--@ include pause
local waiting = call('LLEN', Q)
--@ include pop_gate

-- The text of the last first-level member "id" that is an integer literal, in
-- an object that cjson has accepted.
local function integer(s)
  local p, depth, key, iskey, found = find(s, '{', 1, true) + 1, 1, nil, true, nil
  while true do
    local a, _, c = find(s, '([%[%]{}:,"])', p)
    if not a then return found end
    p = a + 1
    if c == '"' then
      local e, x
      repeat
        e, _, x = find(s, '(["\\])', p)
        if not e then return nil end
        p = e + (x == '"' and 1 or 2)
      until x == '"'
      if depth == 1 and iskey then key = sub(s, a, e) end
    elseif c == '{' or c == '[' then depth = depth + 1
    elseif c == '}' or c == ']' then depth = depth - 1
    elseif depth == 1 then
      iskey = c == ','
      if not iskey and (key == '"id"' or find(key, '\\', 1, true) and cjson.decode('[' .. key .. ']')[1] == 'id') then
        found = match(s, '^%s*(-?%d+)%s*[,}]', p)
      end
    end
  end
end

local function ident(s)
  if #s > 65536 or not find(s, '^[ \t\r\n]*{') then return nil end
  local a, e = find(s, '"id"', 1, true)
  local escaped = find(s, '\\u00', 1, true)
  if not a and not escaped or find(s, '\0', 1, true) then return nil end
  local ok, o = pcall(cjson.decode, s)
  local id = ok and type(o) == 'table' and o.id
  if type(id) == 'number' then
    if escaped or find(s, '"id"', e + 1, true) then ok, id = pcall(integer, s)
    else id = match(s, '^%s*:%s*(-?%d+)%s*[,}]', e + 1) end
    if not ok or not id or find(id, '^-?0%d') then return nil end
  end
  if type(id) ~= 'string' or #id < 1 or #id > 200 or find(id, '[%z\1-\31\127]') then return nil end
  return id
end

--@ include pop_retries

--@ include pop_list

waiting = waiting - took
--@ include pop_end

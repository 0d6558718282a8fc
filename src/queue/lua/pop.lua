-- pop: leases due retries and waiting messages to the caller.
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
--         turn       what comes first.  "retry": due retries, the longest due first;
--                    "new": waiting messages, the oldest first.  Both get their share of n,
--                    and what one has not the other one fills.  For a probe, with n = 1:
--                    "newest": the newest waiting message; "fewest": the due retry
--                    with the fewest attempts
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
-- A message of at most 64 KiB that begins with {"id": and a string without escapes, or an
-- integer, has that id; JSON's white space may stand between, and "," or "}" must follow.
-- Nothing else of it is read.  Of any other JSON object of at most 64 KiB without NUL, the
-- id is the last first-level member "id": a string's text, or an integer's digits.  An id
-- has 1 to 200 bytes and no control characters.  Every other message gets "~" and the
-- token.  The tag is the id, or id#token where the id is in QBACKUP or QRETRY.
--
-- Reading ids is bounded, too: where the messages to decode are larger than 64 KiB
-- together, the pop ends before the next of them.
local Q, B, C, R, D, P, K = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local gsub = string.gsub
--@ include pop_begin
--@ include pause
local waiting = call('LLEN', Q)
--@ include pop_gate

local decodes = 65536

local function valid(id)
  return type(id) == 'string' and #id >= 1 and #id <= 200 and not find(id, '%c') and id or nil
end

-- The id at the beginning, and where that ends.
local function leading(s)
  local _, e = find(s, '^{[ \t\r\n]*"id"[ \t\r\n]*:[ \t\r\n]*')
  if not e then return nil end
  local id, last = match(s, '^"([^"\\%c]+)"[ \t\r\n]*[,}]()', e + 1)
  if not id then
    id, last = match(s, '^(-?%d+)[ \t\r\n]*[,}]()', e + 1)
    if not id or find(id, '^-?0%d') then return nil end
  end
  return valid(id), last
end

-- A double cannot hold each integer.  So the only member "id" is looked up in the text,
-- and where there are several, those that are integers are made strings first.  Outside
-- of strings '"id"' is a string, always; inside of one, what follows is outside.
local function decoded(s)
  if find(s, '\0', 1, true) then return nil end
  if find(s, '\\u006', 1, true) then
    s = gsub(gsub(gsub(s, '"\\u0069d"', '"id"'), '"i\\u0064"', '"id"'), '"\\u0069\\u0064"', '"id"')
  end
  local _, e = find(s, '"id"', 1, true)
  if not e then return nil end
  local several = find(s, '"id"', e + 1, true)
  if several then
    for _, digits in ipairs({'-?[1-9]%d*', '-?0'}) do
      s = gsub(s, '("id"[ \t\r\n]*:[ \t\r\n]*)(' .. digits .. ')([ \t\r\n]*[,}])', '%1"%2"%3')
    end
  end
  local ok, o = pcall(cjson.decode, s)
  local id = ok and type(o) == 'table' and o.id
  if type(id) == 'number' and not several then
    id = match(s, '^[ \t\r\n]*:[ \t\r\n]*(-?%d+)[ \t\r\n]*[,}]', e + 1)
    if id and find(id, '^-?0%d') then return nil end
  end
  return valid(id)
end

-- The message's own id; nil where it has none; false where this call has decoded enough.
local function ident(s)
  if #s > 65536 or not find(s, '^[ \t\r\n]*{') then return nil end
  local id, last = leading(s)
  if id and last <= 512 then return id end
  if #s > decodes and decodes < 65536 then return false end
  decodes = decodes - #s
  return id or decoded(s)
end

--@ include pop_retries

--@ include pop_list
--@ include pop_turns

waiting = waiting - took
--@ include pop_end

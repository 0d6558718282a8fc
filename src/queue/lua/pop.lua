-- pop: leases due retries and waiting messages to the caller.
--
-- KEYS    Q QBACKUP QCONTEXT QRETRY QDELIVERY QPAUSED QRATE QSTATS
-- ARGV    n          messages wanted, >= 1
--         maxbytes   payload per call; one message is always taken
--         max        of a longer payload only the length is sent
--         call       INSTANCE.NUMBER, unique in the fleet; numbers of one INSTANCE rise
--                    (see part/seen.lua); tokens are CALL.1 CALL.2 ...
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
--         prev       number of the last call of this daemon that is known to have taken
--                    messages; 0: none (see part/seen.lua)
-- Returns {status, now, waiting, due, dropped, limited, taken, then for each message:
--         tag, idlen, token, attempts, crashes, payload}
--         status "ok", or "late" (after its deadline, or after a later call of
--         the same daemon), or "paused" (then: why, its TTL in ms or -1);
--         due: first time in QRETRY, "" if empty; idlen: length of the id in
--         the tag; limited: "", or the limit that held messages back: "fleet", or the
--         seconds until the rate allows one; taken: how many the fleet has taken from Q
--         so far, -1 if this pop has not counted; payload: an integer (its length) if it
--         is longer than max.
-- Effect  Each message leaves QRETRY or Q for QBACKUP, QDELIVERY, QCONTEXT.  It
--         leaves its source last, so an error in the middle leaves a message
--         twice, never nowhere; QBACKUP without QCONTEXT is dropped by tick.
--         A retry that was cancelled comes with its mark before the token (see
--         part/mark.lua), and keeps it: the caller settles it and does not run it.
--         QSTATS counts messages taken from the oldest end of Q, last of all.
--         A retry without payload is dropped and counted.  A retry whose token
--         is not "-" expired there: crashes + 1.
-- Again   A second call pops other messages.  After a lost reply, mine tells which
--         messages the call has taken.
--
-- Ids.  A message of at most 64 KiB may begin with {"id": and a string without escapes,
-- or an integer; white space of JSON may stand between, and "," or "}" must follow.
-- Then that is its id, and the rest is not read.  In any other JSON object of at most
-- 64 KiB without NUL, the id is the last first-level member "id": the text of a string,
-- or the digits of an integer.  An id has 1 to 200 bytes and no control characters.
-- Every other message gets "~" and the token.  The tag is the id, or id#token if the id
-- is in QBACKUP or QRETRY.
--
-- Reading ids is bounded, too: after 64 KiB of messages to decode, the pop ends before
-- the next of them.
local Q, B, C, R, D, P, K, S = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local gsub = string.gsub
--@ include seen
--@ include mark
--@ include pop_begin
--@ include pause
local waiting = call('LLEN', Q)
--@ include pop_gate
--@ include pop_list_prove

local decodes = 65536

local function integer(s, from)
  local id, last = match(s, '^(-?%d+)[ \t\r\n]*[,}]()', from)
  if id and not find(id, '^-?0%d') then return id, last end
end

-- The last member "id" of an object.  A double cannot hold each integer.  So a single
-- "id" is read from the text.  If there are several, those that are integers are made
-- strings before decoding.  Outside of strings '"id"' always is a string; after one
-- that begins inside of a string, the text is outside.
local function decoded(s)
  if not find(s, '"id"', 1, true) and not find(s, '\\u006', 1, true) or find(s, '\0', 1, true) then
    return nil
  end
  local ok, o = pcall(cjson.decode, s)
  local id = ok and type(o) == 'table' and o.id
  if type(id) == 'number' then
    s = gsub(gsub(gsub(s, '"\\u0069d"', '"id"'), '"i\\u0064"', '"id"'), '"\\u0069\\u0064"', '"id"')
    local _, e = find(s, '"id"', 1, true)
    if find(s, '"id"', e + 1, true) then
      for _, digits in ipairs({'-?[1-9]%d*', '-?0'}) do
        s = gsub(s, '("id"[ \t\r\n]*:[ \t\r\n]*)(' .. digits .. ')([ \t\r\n]*[,}])', '%1"%2"%3')
      end
      id = cjson.decode(s).id
    else
      id = integer(s, find(s, '[^ \t\r\n:]', e + 1))
    end
  end
  return type(id) == 'string' and #id >= 1 and not find(id, '%c') and id or nil
end

-- The message's own id; nil: it has none; false: this call has decoded enough.
local function ident(s)
  if #s > 65536 then return nil end
  local id, last
  local _, e = find(s, '^{[ \t\r\n]*"id"[ \t\r\n]*:[ \t\r\n]*')
  if e then
    id, last = match(s, '^"([^"\\%c]+)"[ \t\r\n]*[,}]()', e + 1)
    if not id then id, last = integer(s, e + 1) end
    if id and #id <= 200 and last <= 512 then return id end
  elseif not find(s, '^[ \t\r\n]*{') then
    return nil
  end
  if decodes < 65536 and #s > decodes then return false end
  decodes = decodes - #s
  if not id or #id > 200 then id = decoded(s) end
  return id and #id <= 200 and id or nil
end

--@ include pop_retries

--@ include pop_list
--@ include pop_turns

waiting = waiting - took
--@ include pop_count
--@ include pop_end

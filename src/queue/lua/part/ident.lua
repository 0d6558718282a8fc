-- ident: reads the id of a message.
-- Needs   pop
-- Gives   ident(body): the message's own id, nil if it has none; false: this call has decoded
--         enough: the pop ends before this message
--
-- Ids.  ARGV has the name of the member that is the id; below it is "id".  A message of at
-- most 64 KiB may begin with {"id": and a string without escapes, or an integer; white space
-- of JSON may stand between, and "," or "}" must follow.  Then that is its id, and the rest is
-- not read.  In any other JSON object of at most 64 KiB without NUL, the id is the last
-- first-level member "id": the text of a string, or the digits of an integer.  An id has 1 to
-- 200 bytes and no control characters.  Every other message gets "~" and the token.  The tag is
-- the id, or id#token if the id is in QBACKUP or QRETRY.
--
-- Reading ids is bounded, too: after 64 KiB of messages to decode, the pop ends before
-- the next of them.
local gsub = string.gsub
local decodes = 65536
local member = ARGV[12] or 'id'
local key = '"' .. member .. '"'
local key_pattern = gsub(key, '%W', '%%%0')
local escaped = '\\u00[' .. gsub(member, '.', function(c) return string.format('%x', c:byte() / 16) end) .. ']'
local leading = '^{[ \t\r\n]*' .. key_pattern .. '[ \t\r\n]*:[ \t\r\n]*'

local function integer(s, from)
  local id, last = match(s, '^(-?%d+)[ \t\r\n]*[,}]()', from)
  if id and not find(id, '^-?0%d') then return id, last end
end

-- Writes the key without escapes wherever it stands with some.
local function plain(s)
  return (gsub(s, '"([^"\\]*\\u00[^"]*)"', function(text)
    text = gsub(text, '\\u00(%x%x)', function(hex) return string.char(tonumber(hex, 16)) end)
    return text == member and key
  end))
end

-- The last member "id" of an object.  A double cannot hold each integer.  So a single
-- "id" is read from the text.  If there are several, those that are integers are made
-- strings before decoding.  Outside of strings '"id"' always is a string; after one
-- that begins inside of a string, the text is outside.
local function decoded(s)
  if not find(s, key, 1, true) and not find(s, escaped) or find(s, '\0', 1, true) then
    return nil
  end
  local ok, o = pcall(cjson.decode, s)
  local id = ok and type(o) == 'table' and o[member]
  if type(id) == 'number' then
    s = plain(s)
    local _, e = find(s, key, 1, true)
    if find(s, key, e + 1, true) then
      for _, digits in ipairs({'-?[1-9]%d*', '-?0'}) do
        s = gsub(s, '(' .. key_pattern .. '[ \t\r\n]*:[ \t\r\n]*)(' .. digits .. ')([ \t\r\n]*[,}])', '%1"%2"%3')
      end
      id = cjson.decode(s)[member]
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
  local _, e = find(s, leading)
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

-- stream_message: the message that an entry carries.
-- Needs   nothing
-- Gives   message(fields, max): the value of the field "message"; where there is none,
--         all fields as a JSON object of strings, in the entry's order.  Of
--         fields with one name the last counts.  Bytes from 128 on are passed
--         as they are: the JSON is UTF-8 where the entry is.  Names and values of
--         more than max bytes are not made JSON, which nobody would read and may take
--         long: they are given as they are, one a line.
-- In pieces, since cjson allocates six times the length at once, and keeps it.
local PIECE = 4194304
local function quote(s)
  if #s <= PIECE then return cjson.encode(s) end
  local parts = {}
  for i = 1, #s, PIECE do
    parts[#parts + 1] = string.sub(cjson.encode(string.sub(s, i, i + PIECE - 1)), 2, -2)
  end
  return '"' .. table.concat(parts) .. '"'
end

local function message(fields, max)
  local last, size, parts = {}, 0, {}
  for i = 1, #fields, 2 do
    last[fields[i]] = i
    size = size + #fields[i] + #fields[i + 1]
  end
  if last.message then return fields[last.message + 1] end
  if size > max then return table.concat(fields, '\n') end
  for i = 1, #fields, 2 do
    if last[fields[i]] == i then
      parts[#parts + 1] = quote(fields[i]) .. ':' .. quote(fields[i + 1])
    end
  end
  return '{' .. table.concat(parts, ',') .. '}'
end

-- stream_message: the message that an entry carries.
-- Needs   nothing
-- Gives   message(fields): the value of the field "message"; where there is none,
--         all fields as a JSON object of strings, in the entry's order.  Of
--         fields with one name the last counts.  Bytes from 128 on are passed
--         as they are: the JSON is UTF-8 where the entry is.
-- In pieces, since cjson allocates six times the length at once, and keeps it.
local function quote(s)
  if #s <= 65536 then return cjson.encode(s) end
  local parts = {}
  for i = 1, #s, 65536 do
    parts[#parts + 1] = string.sub(cjson.encode(string.sub(s, i, i + 65535)), 2, -2)
  end
  return '"' .. table.concat(parts) .. '"'
end

local function message(fields)
  local last = {}
  for i = 1, #fields, 2 do last[fields[i]] = i end
  if last.message then return fields[last.message + 1] end
  local parts = {}
  for i = 1, #fields, 2 do
    if last[fields[i]] == i then
      parts[#parts + 1] = quote(fields[i]) .. ':' .. quote(fields[i + 1])
    end
  end
  return '{' .. table.concat(parts, ',') .. '}'
end

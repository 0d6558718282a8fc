-- stream_message: makes the message of an entry.
-- Needs   nothing
-- Gives   message(fields, max): three values.  First the value of the field "message"; if
--         there is none, all fields as a JSON object of strings, in the entry's order.
--         Of fields with one name the last counts.  Bytes from 128 on stay as they are:
--         the JSON is UTF-8 if the entry is.  More than 1000 fields, or names and values
--         of more than max bytes, would take too long to make JSON of: they come as they
--         are, one a line.
--         Second, the bytes that the entry counts as: reading many fields takes time,
--         however small they are.  Third, whether it is too large to be delivered.
-- Encodes in pieces, since cjson allocates six times the length at once, and keeps it.
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
  local small = #fields <= 2000
  -- If a message has few fields, only the bytes that are delivered count.
  local function cost(body)
    local rest = size - #body
    return #body + (rest > 1024 and rest or 0) + math.max(64 * (#fields - 16), 0)
  end
  for i = 1, #fields, 2 do
    if small or fields[i] == 'message' then last[fields[i]] = i end
    size = size + #fields[i] + #fields[i + 1]
  end
  local body
  if last.message then
    body = fields[last.message + 1]
    return body, cost(body), #body > max
  end
  if size > max or not small then
    body = table.concat(fields, '\n')
    return body, cost(body), true
  end
  for i = 1, #fields, 2 do
    if last[fields[i]] == i then
      parts[#parts + 1] = quote(fields[i]) .. ':' .. quote(fields[i + 1])
    end
  end
  body = '{' .. table.concat(parts, ',') .. '}'
  return body, cost(body), #body > max
end

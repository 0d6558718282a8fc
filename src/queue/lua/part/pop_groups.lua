-- pop_groups: takes new messages from a list, whose messages belong to groups.
-- Needs   pop; ident(body); places; by: the member that names the group, or "/"; crammed; held_before
-- Gives   fresh(enough); took, counted: as pop_list; put_aside(id, ...), hold(): for a due retry
--
-- A message whose group is full, or has messages that wait, leaves the list, too: it is held.
-- If Redis is full, or HELD_MOST are held, it stays, and so do those behind it in the list.
-- Its tag ends in "#" and a name that no other tag has: pushed and replayed messages whose ids
-- look like it get other tags.
local took, counted, last, aside, oldest_left = 0, 0, ' ' .. stamp .. ' ', 0, ARGV[11] == 'left'
local by_text = gsub(by, '%p', '%%%0')
local escape = find(by, '/', 1, true) and '\\' or '\\u'
local HELD_MOST = 100000
local may_hold, blocked = not crammed and math.max(HELD_MOST - held_before, 0) or 0, false
-- ident() and group_member() may both have to decode a message.
decodes = 2 * decodes

-- The text of a member that is a string or an integer; nil: it has none; false: this call has
-- decoded enough.  A member that stands among the first 512 bytes, before any other object or
-- array, is read without decoding the rest: without escapes, what follows its name and a colon is
-- its value.
local by_key = '"' .. by .. '"'
local by_first = '^[ \t\r\n]*{[^{%[]-"' .. by_text .. '"[ \t\r\n]*:[ \t\r\n]*()'
local function group_member(s)
  if #s > 65536 then return nil end
  local at = find(s, by_key, 1, true)
  local value = at and at <= 512 and match(#s > 1024 and sub(s, 1, 1024) or s, by_first)
  if value and not find(s, by_key, value, true) and not find(s, '\\', 1, true) then
    local text = match(s, '^"([^"%c]*)"[ \t\r\n]*[,}]', value) or integer(s, value)
    if text then return text end
  end
  if not find(s, '^[ \t\r\n]*{') then return nil end
  if not at and not find(s, escape, 1, true) or find(s, '\0', 1, true) then return nil end
  if decodes < 65536 and #s > decodes then return false end
  decodes = decodes - #s
  local ok, o = pcall(cjson.decode, s)
  local value = ok and type(o) == 'table' and o[by]
  if type(value) == 'number' then
    -- A double does not hold each integer: its digits become a string.
    s = gsub(s, '("' .. by_text .. '"[ \t\r\n]*:[ \t\r\n]*)(-?[1-9]%d*)([ \t\r\n]*[,}])', '%1"%2"%3')
    local again_ok, o2 = pcall(cjson.decode, s)
    local text = again_ok and type(o2) == 'table' and o2[by]
    if type(text) == 'string' then
      value = text
    elseif value == 0 then
      value = '0'
    elseif not at and value % 1 == 0 and math.abs(value) < 1e15 then
      value = string.format('%.0f', value)
    end
  end
  return type(value) == 'string' and value or nil
end

-- The group of a message; nil: it belongs to none; false: this call has decoded enough.
local function group_of(body, id)
  local group
  if by == '/' then group = id and match(id, '^([^/]+)/') else group = group_member(body) end
  if not group then return group end
  return #group >= 1 and #group <= 200 and not find(group, '%c') and group or nil
end

-- Whether a message of the group may start; then it has a place.
local function enters(group)
  if not group then return true end
  local g = group_now(group)
  if g.held or g.used >= places then return false end
  g.used = g.used + 1
  return true
end

-- Words of commands that hold messages: run by hold().
local held = {hset = {}, copy = {}, groups = {}, rows = {}, zadd = {}}
local function put_aside(id, attempts, crashes, body, group, kept)
  local g, class = group_now(group), attempts + crashes > 0 and '1' or '2'
  local before = g[class]
  if not before then
    local r = call('ZREVRANGEBYLEX', O, '(' .. group .. '\0' .. class .. '\255', '[' .. group .. '\0' .. class, 'LIMIT', '0', '1')[1]
    before = tonumber(r and match(r, '^[^%z]*%z.([^%z]*)') or '') or 0
  end
  local at = math.max(now, before + 1e-6)
  g.held, aside = true, aside + 1
  local time, i = string.format('%017.6f', at), #held.hset + 1
  g[class] = tonumber(time)
  local unique = name .. 'h' .. text(aside)
  local tag = id and id .. '#' .. unique or '~' .. unique
  held.hset[i], held.hset[i + 1] = tag, text(attempts) .. ' ' .. text(crashes) .. ' - ' .. stamp .. (kept and ' 0' or ' ') .. text(id and #id or #tag)
  held.copy[#held.copy + 1], held.copy[#held.copy + 2] = tag, body
  if kept then held.copy[#held.copy + 1], held.copy[#held.copy + 2] = tag .. '\0saved', kept end
  held.groups[i], held.groups[i + 1] = tag, group
  held.rows[i], held.rows[i + 1] = '0', held_row(group, class, time, tag)
  held.zadd[i], held.zadd[i + 1] = time, tag
end

local function hold()
  if #held.hset == 0 then return end
  call('HSET', C, unpack(held.copy))
  call('HSET', D, unpack(held.hset))
  call('HSET', G, unpack(held.groups))
  call('ZADD', H, unpack(held.zadd))
  call('ZADD', O, unpack(held.rows))
  held = {hset = {}, copy = {}, groups = {}, rows = {}, zadd = {}}
end

-- Gives places to these tags, before they are leased.
local function take_places(tags, groups)
  local words, rows = {}, {}
  for i, tag in pairs(tags) do
    if groups[i] then
      words[#words + 1], words[#words + 2] = tag, groups[i]
      rows[#rows + 1], rows[#rows + 2] = '0', row(groups[i], tag)
    end
  end
  if #words == 0 then return end
  -- As lease(): many small ones need an index.
  local long = #words >= 16 and string.rep('\0', 65)
  if long then
    words[#words + 1], words[#words + 2] = words[1], words[2]
    rows[#rows + 1], rows[#rows + 2] = rows[1], rows[2]
    words[1], words[2], rows[1], rows[2] = long, '', '0', long
  end
  call('HSET', G, unpack(words))
  if long then call('HDEL', G, long) end
  call('ZADD', O, unpack(rows))
  if long then call('ZREM', O, long) end
end

local function fresh(enough)
  while got < enough and took < waiting and not (full or blocked) and aside < 500 and work < 2500 do
    local bodies, tags, idlens, tokens, groups, n, m = {}, {}, {}, {}, {}, 0, 0
    repeat
      if left < 1 or got + aside > 0 and bytes >= room then full = true break end
      local body = call('LINDEX', Q, oldest_left and text(m) or '-' .. text(m + 1))
      local id = ident(body)
      local group = id ~= false and group_of(body, id)
      if id == false or group == false then full = true break end
      local enters_now = enters(group)
      if not enters_now and aside >= may_hold then blocked = true break end
      m, bytes = m + 1, bytes + #body
      if enters_now then
        n, got, left = n + 1, got + 1, left - 1
        tokens[n], groups[n] = name .. text(got), group
        bodies[n], tags[n] = body, id or '~' .. tokens[n]
        idlens[n] = #tags[n]
      else
        put_aside(id, 0, 0, body, group)
      end
    until m == 25 or got == enough or took + m == waiting or aside == 500 or work >= 2500
    if m == 0 then break end
    if n > 0 then
      local inb = call('ZMSCORE', B, unpack(tags))
      local inr = (first or promoted_any) and call('ZMSCORE', R, unpack(tags))
      local zadd, hset, copy, used = {}, {}, {}, {}
      for j = 1, n do
        local tag, body, k = tags[j], bodies[j], 2 * j - 1
        if inb[j] or inr and inr[j] or used[tag] or find(tag, '%.h%d+$') then
          repeat tag = tag .. '#' .. tokens[j]
          until not (used[tag] or call('ZSCORE', B, tag) or call('ZSCORE', R, tag))
        end
        used[tag], tags[j] = true, tag
        zadd[k], zadd[k + 1] = stamp, tag
        hset[k], hset[k + 1] = tag, '0 0 ' .. tokens[j] .. last .. text(idlens[j])
        copy[k], copy[k + 1] = tag, body
        give(tag, idlens[j], tokens[j], 0, 0, #body > max and #body or body)
      end
      take_places(tags, groups)
      -- As in pop_list.  One of these may have had a group, too.
      for i = 1, lease(zadd, hset, copy) and n or 0 do
        redis.pcall('HDEL', C, tags[i] .. '\0saved')
        if not groups[i] and leave_groups({tags[i]}, places) then promoted_any = true end
        groups_now = {}
      end
    end
    hold()
    call('LTRIM', Q, oldest_left and m or 0, oldest_left and -1 or -m - 1)
    took, counted = took + m, counted + m
  end
end

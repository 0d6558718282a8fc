-- tick_groups: repairs groups.  A DEL, another consumer's ack, or a failover may have removed
-- the message that others wait for.
-- Needs   tick, groups, places
-- The fleet looks at all groups once in 9 s: the field "groups" of QSTATS has the time at which
-- that began, and the group where it goes on.  If QHELD, QGROUP or QORDER is gone, it is made
-- again from the other two: "rows", "tags" and "held" stand for that, in place of a group.

-- The next rows of QORDER: QGROUP and QHELD must have them.
local function walk_rows(from)
  local rows = call('ZRANGEBYLEX', O, from, '+', 'LIMIT', 0, 50)
  for _, r in ipairs(rows) do
    local group, time, tag = string.match(r, '^([^%z]+)%z%d([^%z]*)%z(.*)$')
    if not group then
      call('ZREM', O, r)
    else
      call('HSET', G, tag, group)
      if time ~= '' then call('ZADD', H, 'NX', time, tag) end
    end
  end
  return #rows == 50 and '(' .. rows[50] or nil
end

-- The next tags of QGROUP: QORDER must have those with a place.
local function walk_tags(from)
  local found = call('HSCAN', G, from, 'COUNT', 20)
  for i = 1, #found[2], 2 do
    local tag, group = found[2][i], found[2][i + 1]
    if call('ZSCORE', B, tag) or call('ZSCORE', R, tag) then
      call('ZADD', O, '0', row(group, tag))
    elseif not call('ZSCORE', H, tag) then
      call('HDEL', G, tag)
    end
  end
  return found[1] ~= '0' and found[1] or nil
end

-- The next held messages, the oldest first: QORDER must have them.
local function walk_held(rank)
  local tags = call('ZRANGE', H, rank, rank + 49)
  for _, tag in ipairs(tags) do
    local group, time = call('HGET', G, tag), held_at(tag)
    if group and not call('ZSCORE', O, held_row(group, '1', time, tag)) then
      call('ZADD', O, '0', held_row(group, '2', time, tag))
    end
  end
  return #tags == 50 and rank + 50 or nil
end

local function look_at_groups()
  local value = redis.pcall('HGET', S, 'groups')
  local began, how, from = string.match(type(value) == 'string' and value or '', '^([%d.]+) (%a+) (.*)$')
  if how == 'end' and now - began < 9 and now >= tonumber(began) then return end
  if call('ZCARD', H) + call('ZCARD', O) + call('HLEN', G) == 0 then return end
  if not how or how == 'end' then
    began, how, from = stamp, 'groups', '-'
    if call('ZCARD', O) ~= call('HLEN', G) then how, from = 'rows', '-' end
  end
  permitted()
  while work < 500 do
    work = work + 1
    if how == 'rows' then
      work, from = work + 50, walk_rows(from)
      if not from then how, from = 'tags', '0' end
    elseif how == 'tags' then
      work, from = work + 50, walk_tags(from)
      if not from then how, from = 'held', '0' end
    elseif how == 'held' then
      work, from = work + 50, walk_held(from)
      if not from then how, from = 'groups', '-' end
    else
      local r = call('ZRANGEBYLEX', O, from, '+', 'LIMIT', 0, 1)[1]
      local group = r and string.match(r, '^([^%z]+)%z')
      if not group then how = 'end' break end
      local g = group_now(group)
      local lost = g.lost or g.first and not g.promoted and not call('ZSCORE', H, g.first)
      -- Messages without payload were there, and there may be more of them.
      if lost or g.promoted == 0 then groups_now[group] = nil else from = '(' .. group .. '\1' end
      if lost then how, from = 'rows', '-' end
    end
  end
  local kept = redis.pcall('HSET', S, 'groups', began .. ' ' .. how .. ' ' .. from)
  if how ~= 'end' and type(kept) == 'number' then more = 1 end
end

-- After an error begin anew: Redis may have refused the place.
if not attempt(look_at_groups) then redis.pcall('HDEL', S, 'groups') end

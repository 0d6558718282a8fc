-- tick_groups: repairs groups.  A DEL, another consumer's ack, or a failover may have removed
-- the message that others wait for.
-- Needs   tick, groups, places
-- The fleet looks at all groups once in 9 s: the field "groups" of QSTATS has the time at which
-- that began, and the group where it goes on.  If QHELD, QGROUP or QORDER is gone, it is made
-- again from the other two: "rows", "tags" and "held" stand for that, in place of a group.

-- Bytes of rows and tags that were read.
local read = 0

-- A row of QORDER: nil if it is not rqd's; then it goes.
local function ours(r)
  local group, tag, time = parts(r)
  read = read + #r
  if not group then call('ZREM', O, r) end
  return group, tag, time
end

-- The next row of QORDER: QGROUP and QHELD must have it.
local function walk_rows(from)
  local r = call('ZRANGEBYLEX', O, from, '+', 'LIMIT', 0, 1)[1]
  if not r then return nil end
  local group, tag, time = ours(r)
  if not group then return from end
  if call('HEXISTS', G, tag) == 0 then
    call('HSET', G, tag, group)
  end
  if time then call('ZADD', H, 'NX', time, tag) end
  return '(' .. r
end

-- The next tags of QGROUP: QORDER must have those with a place.
local function walk_tags(from)
  local found = call('HSCAN', G, from, 'COUNT', 1)
  for i = 1, #found[2], 2 do
    local tag, group = found[2][i], found[2][i + 1]
    work, read = work + 1, read + #tag + #group
    if call('ZSCORE', B, tag) or call('ZSCORE', R, tag) then
      call('ZADD', O, '0', row(group, tag))
    elseif not call('ZSCORE', H, tag) then
      call('HDEL', G, tag)
    end
  end
  return found[1] ~= '0' and found[1] or nil
end

-- The next held message, the oldest first: QORDER must have it.  One whose group nobody knows is
-- due: the next pop finds its group.
local function walk_held(rank)
  local tag = call('ZRANGE', H, rank, rank)[1]
  if not tag then return nil end
  local group, time = call('HGET', G, tag), held_at(tag)
  read = read + #tag
  if not group then
    if call('HEXISTS', C, tag) == 1 then
      call('ZADD', R, 'NX', time, tag)
    end
    call('ZREM', H, tag)
    return rank
  end
  if not call('ZSCORE', O, held_row(group, '1', time, tag)) then
    call('ZADD', O, '0', held_row(group, '2', time, tag))
  end
  return rank + 1
end

local function look_at_groups()
  local value = redis.pcall('HGET', S, 'groups')
  local began, how, from = string.match(type(value) == 'string' and value or '', '^([%d.]+) (%a+) (.*)$')
  if how == 'end' and now - began < 9 and now >= tonumber(began) then return end
  if call('ZCARD', H) +
      call('ZCARD', O) +
      call('HLEN', G) == 0 then
    return
  end
  if not how or how == 'end' then
    began, how, from = stamp, 'groups', '-'
    local tags = call('HLEN', G)
    if call('ZCARD', O) ~= tags or call('ZCARD', H) > tags then how, from = 'rows', '-' end
  end
  permitted()
  -- A row with another score is not rqd's, and Redis would not find the rows beside it.
  local low, high = call('ZCOUNT', O, '-inf', '(0'), call('ZCOUNT', O, '(0', '+inf')
  if low > 0 then call('ZREMRANGEBYRANK', O, 0, math.min(low, 20) - 1) end
  if high > 0 then call('ZREMRANGEBYRANK', O, -math.min(high, 20), -1) end
  while work < 500 and read <= 65536 do
    work = work + 1
    if how == 'rows' then
      from = walk_rows(from)
      if not from then how, from = 'tags', '0' end
    elseif how == 'tags' then
      from = walk_tags(from)
      if not from then how, from = 'held', '0' end
    elseif how == 'held' then
      from = walk_held(from)
      if not from then how, from = 'groups', '-' end
    else
      local r = call('ZRANGEBYLEX', O, from, '+', 'LIMIT', 0, 1)[1]
      if not r then how = 'end' break end
      local group, tag, time = ours(r)
      -- A message that somebody has deleted came again in another group: here it has no place.
      local now_in = group and not time and call('HGET', G, tag)
      if now_in and now_in ~= group then group = call('ZREM', O, r) and nil end
      local g = group and group_now(group) or {promoted = 0}
      local lost = g.lost or g.first and not g.promoted and not call('ZSCORE', H, g.first)
      -- Messages without payload were there, and there may be more of them.
      if lost or g.promoted == 0 then groups_now[group or ''] = nil else from = '(' .. group .. '\1' end
      if lost then how, from = 'rows', '-' end
    end
  end
  local kept = redis.pcall('HSET', S, 'groups', began .. ' ' .. how .. ' ' .. from)
  if how ~= 'end' and type(kept) == 'number' then more = 1 end
end

-- After an error begin anew: Redis may have refused the place.
if not attempt(look_at_groups) then redis.pcall('HDEL', S, 'groups') end

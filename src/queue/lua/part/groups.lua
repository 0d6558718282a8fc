-- groups: who has a place in a group, and who waits for one.
-- Needs   call; C R D H G O: QCONTEXT QRETRY QDELIVERY QHELD QGROUP QORDER; stamp: the time
-- Gives   row(group, tag), held_row(group, class, time, tag): of QORDER; parts(row); held_at(tag):
--         the time in such a row, nil if the tag is not held; promote(group, most): makes the first
--         held messages due, in their order; leave_groups(tags, most): they have left QBACKUP and
--         QRETRY, so as many held messages of their groups are due now, but a group has no more
--         than `most`; nil: no limit is known; unhold(tag): a held message leaves; permitted():
--         tests permissions
--
-- QGROUP tells the group of a tag.  QORDER has a row for each tag of QGROUP, all of score 0, so
-- that their text sorts them:
--   GROUP \0 0 \0 TAG         has a place: it is in QBACKUP or QRETRY.  If it is in neither,
--                             the row counts for nothing, and is removed when it is seen.  If it
--                             is in QRETRY for later, its handler holds the group
--   GROUP \0 1 TIME \0 TAG    is held, and has failed before: these come first
--   GROUP \0 2 TIME \0 TAG    is held.  TIME is its score in QHELD
-- No group has a control character.
local function row(group, tag) return group .. '\0000\0' .. tag end
local function held_at(tag)
  local time = call('ZSCORE', H, tag)
  return time and string.format('%017.6f', time)
end
local function held_row(group, class, time, tag)
  return group .. '\0' .. class .. time .. '\0' .. tag
end

-- The parts of a row: its group, its tag, and its time if it is held; nil: it is not rqd's.
local function parts(r)
  if #r > 4096 then return nil end
  local group, time, tag = string.match(r, '^([^%z]+)%z[12](%d+%.%d+)%z(.*)$')
  if group then return group, tag, time end
  return string.match(r, '^([^%z]+)%z0%z(.*)$')
end

-- Whether a time in QRETRY is later than that of what a call has made due.
local function is_later(due) return due and due - stamp > 0.001 end

local due_now = 0	-- by this call: each is due 1 us after the one before
local function promote(group, most)
  local done, size = 0, 0
  for _ = 1, most + 10 do
    if done == most or size > 65536 then break end
    local held = call('ZRANGEBYLEX', O, '[' .. group .. '\0001', '(' .. group .. '\1', 'LIMIT', '0', '1')[1]
    if not held then break end
    local tag = string.match(held, '^[^%z]*%z[^%z]*%z(.*)$') or ''
    size = size + #held
    if call('HEXISTS', C, tag) == 1 then
      if call('HEXISTS', G, tag) == 0 then
        call('HSET', G, tag, group)
      end
      call('ZADD', O, '0', row(group, tag))
      call('ZADD', R, 'NX', string.format('%.6f', stamp + due_now * 1e-6), tag)
      due_now = due_now + 1
      done = done + 1
    else
      redis.pcall('HDEL', C, tag .. '\0saved')
      call('HDEL', D, tag)
      call('HDEL', G, tag)
    end
    call('ZREM', H, tag)
    call('ZREM', O, held)
  end
  return done
end

-- Reads QHELD last: what only promote() needs is tested only if it may be needed.
local function permitted()
  call('HMGET', G, '\0')
  call('HDEL', G, '\0')
  call('ZREM', O, '\0')
  call('ZADD', O, 'XX', '0', '\0')
  if call('ZCARD', H) == 0 then return end
  call('HEXISTS', C, '\0')
  call('ZSCORE', R, '\0')
  call('ZMSCORE', R, '\0')
  call('ZRANGEBYLEX', O, '[', '[', 'LIMIT', '0', '0')
  call('ZREM', H, '\0')
end

-- Whether a handler holds the group, which has these rows of places.
local function is_kept(group, rows)
  local tags = {}
  for i, r in ipairs(rows) do tags[i] = string.sub(r, #group + 4) end
  for i = 1, #tags, 100 do
    for _, due in ipairs(call('ZMSCORE', R, unpack(tags, i, math.min(i + 99, #tags)))) do
      if is_later(due) then return true end
    end
  end
  return false
end

local function leave_groups(tags, most)
  local groups = call('HMGET', G, unpack(tags))
  local rows, gone, left = {}, {}, {}
  for i, tag in ipairs(tags) do
    local group = groups[i]
    if group then
      rows[#rows + 1], gone[#gone + 1] = row(group, tag), tag
      left[group] = (left[group] or 0) + 1
    end
  end
  if #rows == 0 then return false end
  call('ZREM', O, unpack(rows))
  call('HDEL', G, unpack(gone))
  local promoted = 0
  if call('ZCARD', H) == 0 then return false end
  for group, n in pairs(left) do
    if most == 1 then
      -- Its first row has the place, or waits for it.
      local first = call('ZRANGEBYLEX', O, '[' .. group .. '\0', '(' .. group .. '\1', 'LIMIT', '0', '1')[1]
      n = first and string.byte(first, #group + 2) ~= 48 and 1 or 0
    else
      local rows = call('ZRANGEBYLEX', O, '[' .. group .. '\0000', '(' .. group .. '\0001')
      n = most and math.min(most - #rows, n + 1) or n
      if n > 0 and is_kept(group, rows) then n = 0 end
    end
    if n > 0 then promoted = promoted + promote(group, n) end
  end
  return promoted > 0
end

local function unhold(tag)
  local time, group = held_at(tag), call('HGET', G, tag)
  if group and time then
    call('ZREM', O, held_row(group, '1', time, tag), held_row(group, '2', time, tag))
    call('HDEL', G, tag)
  end
  call('ZREM', H, tag)
end

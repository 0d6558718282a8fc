-- places: how many messages of a group may start.
-- Needs   groups; B: QBACKUP; places: how many a group has
-- Gives   group_now(group): {used, held, first, promoted, lost}: how many places are taken; whether
--         messages are held; the tag of the first.  It is read once in a call.  Removes the rows of
--         messages that are nowhere, and makes held messages due for which there is a place:
--         promoted, how many, nil: none is free; lost: QHELD did not have the first; work: rows
--         read; promoted_any: whether any were made due
-- Redis converts a number of Lua to text slowly.
local groups_now, work, promoted_any = {}, 0, false
local limit = string.format('%d', places + 1)

local function group_now(group)
  local g = groups_now[group]
  if g then return g end
  local stale
  repeat
    g, stale = {used = 0, held = false}, nil
    local rows = call('ZRANGEBYLEX', O, '[' .. group .. '\0', '(' .. group .. '\1', 'LIMIT', '0', limit)
    work = work + 1 + #rows
    for _, r in ipairs(rows) do
      local class, tag = string.match(r, '^[^%z]*%z(.)[^%z]*%z(.*)$')
      if class and class ~= '0' then
        g.held, g.first = true, g.first or tag
      elseif class and call('ZSCORE', B, tag) then
        g.used = g.used + 1
      elseif class and call('ZSCORE', R, tag) then
        g.used = g.used + (is_later(call('ZSCORE', R, tag)) and places or 1)
      else
        stale = stale or {}
        stale[#stale + 1] = r
        call('HDEL', G, tag or '')
      end
    end
    if stale then call('ZREM', O, unpack(stale)) end
  until not stale
  if g.held and g.used < places then
    g.lost = not call('ZSCORE', H, g.first)
    g.promoted = promote(group, places - g.used)
    work = work + 10 * (g.promoted > 0 and g.promoted or 10)
    g.used, promoted_any = places, true
  end
  groups_now[group] = g
  return g
end

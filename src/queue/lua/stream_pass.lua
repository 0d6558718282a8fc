-- stream_pass: lets a consumer group pass over the entries that wait.
--
-- KEYS    Q
-- ARGV    group
--         id         of the last entry to be passed over
--         read       number of entries ever added up to this one; "": not known
-- Returns how many it passes over; -1 if the server does not know (before 7.0)
-- Effect  No consumer of the group is given these entries.  A group that is further
--         already stays where it is.
-- Again   Finds the group there: returns 0.
local Q, group, id, call = KEYS[1], ARGV[1], ARGV[2], redis.call
local function is_behind(a, b)
  local ams, aseq = string.match(a, '^(%d+)-(%d+)$')
  local bms, bseq = string.match(b, '^(%d+)-(%d+)$')
  local function cmp(x, y)
    return #x ~= #y and #x - #y or x < y and -1 or x > y and 1 or 0
  end
  local d = cmp(ams, bms)
  return (d ~= 0 and d or cmp(aseq, bseq)) < 0
end

for _, info in ipairs(call('XINFO', 'GROUPS', Q)) do
  local g = {}
  for i = 1, #info, 2 do g[info[i]] = info[i + 1] end
  if g.name == group then
    if not is_behind(g['last-delivered-id'], id) then return 0 end
    if ARGV[3] == '' then
      call('XGROUP', 'SETID', Q, group, id)
      return -1
    end
    call('XGROUP', 'SETID', Q, group, id, 'ENTRIESREAD', ARGV[3])
    return g['entries-read'] and math.max(ARGV[3] - g['entries-read'], 0) or -1
  end
end
return redis.error_reply('NOGROUP the stream has no consumer group ' .. group)

-- tick_list: reads how many messages the fleet has taken from the list, and whether
-- others take some uncounted, for the curve of arrivals (src/policy/arrivals.h).
-- Needs   tick_begin, mark, taken; S: QSTATS
-- Gives   hooks.so_far: -1 if it is not known; hooks.others: 1 or 0
--
-- Looks at 8 entries of QBACKUP: those with the oldest renewals, and some from a random
-- one on.  An entry without a field in QDELIVERY is a foreign consumer's.  A daemon of
-- the first version has no record of its pops there (see part/seen.lua), and does not
-- count them.
local function is_ours(tag)
  local size = call('HSTRLEN', D, tag)
  if size == 0 then return false end
  local token = size <= 300 and string.match(call('HGET', D, tag), '^%d+ %d+ (%S+)')
  local instance = token and string.match(unmark(token), '^(.*)%.%d+%.%d+$')
  return not instance or call('HEXISTS', D, '\1' .. instance) == 1
end

attempt(function()
  local size = 0
  local count = call('ZCARD', B)
  for i = 0, math.min(count, 8) - 1 do
    local rank = i < 2 and i or (math.floor(now * 1e6) + i) % count
    local tag = call('ZRANGE', B, rank, rank)[1]
    size = size + #tag
    if not is_ours(tag) then hooks.others = 1 end
    if hooks.others or size > 65536 then break end
  end
end)
hooks.so_far = taken_so_far(S)

-- soonest: tells when the first member of a zset of times falls due.  It does not read
-- the member, which is a payload of any size.  Scores from 1e11 on are milliseconds.
-- Needs   call now
-- Gives   due_by(zset, time): how many are due; soonest(zset): the first time; now if
--         one is due; nil if none is within 15 s
local function due_by(zset, at)
  return call('ZCOUNT', zset, '-inf', string.format('%.6f', at)) +
    call('ZCOUNT', zset, '1e11', string.format('%.0f', at * 1000))
end

local function soonest(zset)
  local low, high = now, now + 15
  if due_by(zset, high) == 0 then return nil end
  if due_by(zset, low) > 0 then return now end
  for _ = 1, 12 do
    local middle = (low + high) / 2
    if due_by(zset, middle) > 0 then high = middle else low = middle end
  end
  return high
end

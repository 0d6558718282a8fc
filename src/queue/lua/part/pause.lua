-- pause: who has paused the queue?
-- Needs   call; P: QPAUSED
-- Gives   pause(): nil where nobody has; else the text, cut, "" where it is none, and
--         its TTL in ms, -1 where it has none
local function pause()
  if call('EXISTS', P) == 0 then return nil end
  local why = redis.pcall('GET', P)
  return type(why) == 'string' and string.sub(why, 1, 1000) or '', call('PTTL', P)
end

-- pause: who has paused the queue?
-- Needs   call; P: QPAUSED
-- Gives   pause(): nil where nobody has; else the text, cut, "" where it is none, and
--         its TTL in ms, -1 where it has none
local function pause()
  if call('EXISTS', P) == 0 then return nil end
  local why = redis.pcall('GETRANGE', P, 0, 999)
  return type(why) == 'string' and why or '', call('PTTL', P)
end

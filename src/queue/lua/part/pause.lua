-- pause: reads whether the queue is paused, by whom and for how long.
-- Needs   call; P: QPAUSED
-- Gives   pause(): nil: not paused; else the text, cut, "" if QPAUSED is no text, and
--         its TTL in ms, -1 if it has none
local function pause()
  if call('EXISTS', P) == 0 then return nil end
  local why = redis.pcall('GETRANGE', P, 0, 999)
  return type(why) == 'string' and why or '', call('PTTL', P)
end

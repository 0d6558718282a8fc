-- promote: moves due messages from QDELAYED to the source.  If QDELAYED is wrong, the
-- rest of the tick is done all the same.
-- Needs   tick_begin, soonest; L: QDELAYED; add(m): adds a message to the source
-- Gives   delayed: as answered
local delayed
local function promote(from, to)
  while true do
    local m = call('ZRANGEBYSCORE', L, from, to, 'LIMIT', 0, 1)[1]
    if not m then return end
    if promoted >= batch or bytes > 0 and bytes + #m > room then more = 1 return end
    add(m)
    call('ZREM', L, m)
    promoted, bytes = promoted + 1, bytes + #m
  end
end

attempt(function()
  -- Removes nothing, but shows now whether messages may leave QDELAYED.
  call('ZREM', L, nobody)
  promote('-inf', stamp)
  promote('1e11', string.format('%.0f', now * 1000))
  delayed = soonest(L)
end)
delayed = delayed and string.format('%.6f', delayed) or ''

-- pop_turns: due retries and new messages take turns, so that neither can starve the other.
-- Needs   pop_retries; fresh(most, newest): leases new messages until got is most
-- ARGV[9] says which sort comes first, in the words of pop.lua.  That sort gets half of
-- n, rounded up, and the other one the rest.  If one has too few, the other fills up.
-- 'due' gives retries all of n.
local turn, half = match(ARGV[9], '^%a+'), math.ceil(n / 2)
if turn == 'new' then fresh(half)
elseif turn == 'newest' then fresh(half, true)
elseif turn == 'fewest' then fewest()
elseif turn == 'due' then retries(n)
else retries(half) end
if turn == 'new' then retries(n)
elseif turn == 'newest' then fewest() end
fresh(n)
retries(n)

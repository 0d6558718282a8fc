-- mark: what cancel writes before the token of a delivery.
-- Needs   nothing
-- Gives   unmark(token): the token alone, and its mark: nil, "drop" or "dead", where it
--         is "!drop:TOKEN" or "!dead:TOKEN"
--
-- The token says who has the message; the mark says that nobody may deliver it again.  What
-- compares tokens compares them without the mark, so the owner still renews and settles.
local function unmark(token)
  if not token or string.byte(token) ~= 33 then return token end
  local mark, bare = string.match(token, '^!(d%a+):(%S+)$')
  if mark == 'drop' or mark == 'dead' then return bare, mark end
  return token
end

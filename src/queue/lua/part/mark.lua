-- mark: reads the mark that cancel writes before the token of a delivery, and the sign of a
-- saved text.
-- Needs   nothing
-- Gives   unmark(token): the token alone; and, if it is "!drop:WHO:TOKEN" or
--         "!dead:WHO:TOKEN", its mark, "drop" or "dead"; WHO; and all that stands before
--         the token.  WHO is "" if the mark does not name anybody: "!drop:TOKEN".
--         Of "!retry:WHO:TOKEN": the token; nil; WHO.
--         saved(tag, value): the field of QCONTEXT with the text that a handler has saved, by the
--         field of QDELIVERY; nil: there is none
--
-- The token names the owner of the message; "drop" and "dead" forbid another delivery.
-- Scripts compare tokens without the mark, so the owner still renews and settles.  "retry" only
-- asks the owner to end its run: it goes with the token.
local function unmark(token)
  if not token or string.byte(token) ~= 33 then return token end
  local front, mark, who, bare = string.match(token, '^(!(%a+):([^:]-):?)([^:]+)$')
  if mark == 'retry' then return bare, nil, who end
  if mark == 'drop' or mark == 'dead' then return bare, mark, who, front end
  return token
end

-- The sign is a zero before the length of the id, the last word.  Results and cancels keep that
-- word, and a new message of this tag begins without a zero.  So does a delivery by a version
-- of rqd that knows no saved texts: its handler has not had the text, so nobody gets it later.
local function saved(tag, value)
  return value and string.find(value, ' 0%d', -5) and tag .. '\0saved'
end

-- end_waiting: ends a message that waits in QRETRY, or is held in QHELD.
-- Needs   mark; letter; groups; leave(tags)
-- Gives   end_waiting(tag, value, held, reason, body, by): removes it; value: its field in
--         QDELIVERY.  Unless body is false, its letter is written before; why that cannot be, and
--         nothing is removed, or nil
local function end_waiting(tag, value, held, reason, body, by)
  if body then
    local attempts, idlen = string.match(value, '^(%d+) %d+ %S+ %S+ (%d+)$')
    local id, text = string.sub(tag, 1, tonumber(idlen) or #tag), saved(tag, value)
    text = text and call('HGET', C, text)
    local why = letter(id, body, reason, attempts or 0, '', by, '', nil, text)
    if why then return why end
  end
  leave({tag})
  if held then unhold(tag) end
  call('ZREM', R, tag)
  call('HDEL', C, tag, tag .. '\0saved')
  call('HDEL', D, tag)
  leave_groups({tag})
end

-- taken_by: finds the deliveries in QBACKUP that one pop has made.
-- Needs   call unmark; B D: QBACKUP QDELIVERY
-- Gives   taken_by(prefix, from, offset, page): {tag, attempts, crashes, token, length of
--         the id, and the text before the token or nil} of each whose token begins with
--         the prefix, among `page` entries of QBACKUP, fewer if their tags are large;
--         and where the next page begins: a
--         time ("" after the last one), and an offset among those of that time
local function taken_by(prefix, from, offset, page)
  -- Reads by rank, since LIMIT would count through all entries of one time; and one by
  -- one, since a tag could be of any size.
  local tags, times, size = {}, {}, 0
  local rank = call('ZCOUNT', B, '-inf', '(' .. from) + offset
  while #tags < page and size <= 65536 do
    local e = call('ZRANGE', B, rank + #tags, rank + #tags, 'WITHSCORES')
    if not e[1] then break end
    size = size + #e[1]
    tags[#tags + 1], times[#times + 1] = e[1], e[2]
  end
  local rows, go_on, past = {}, '', 0
  if #tags == page or size > 65536 then
    -- Go on at the last time seen, with an offset if all of the page has that time.
    go_on = times[#times]
    if times[1] == go_on then past = #tags + (from == go_on and offset or 0) end
  end
  for _, tag in ipairs(tags) do
    local value = call('HSTRLEN', D, tag) <= 300 and
        call('HGET', D, tag) or ''
    local a, c, token, l = string.match(value, '^(%d+) (%d+) (%S+) %S+ (%d+)$')
    local bare, _, _, front = unmark(token)
    if bare and string.sub(bare, 1, #prefix) == prefix then
      rows[#rows + 1] = {tag, a, c, bare, l, front}
    end
  end
  return rows, go_on, past
end

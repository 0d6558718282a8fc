-- unique: the tags of ids, and the scores of ids that wait for the end of their own run.
-- Needs   call; Q C: the zset of ids, QCONTEXT
-- Gives   tag_of(id), id_of(tag), put_off(score), put_back(id)
--
-- The tag is the id, if that may be logged: 1 to 200 bytes, no control characters.
-- Otherwise, and if the id looks like such a tag, it is "~" and the id's SHA1 sum.  So
-- an id always has the same tag, and cannot run twice at the same time.
--
-- An id that is due while it runs would hide the due ids behind it.  So its score is
-- put off by 1e10 (some three centuries), and put back when it leaves QBACKUP.
local AWAY = 1e10

local function tag_of(id)
  if #id >= 1 and #id <= 200 and not string.find(id, '^~') and not string.find(id, '[%z\1-\31\127]') then
    return id
  end
  return '~' .. redis.sha1hex(id)
end

local function id_of(tag)
  return string.find(tag, '^~') and call('HGET', C, tag) or tag
end

local function put_off(score)
  return string.format('%.6f', AWAY + math.max(score, 0))
end

-- Returns true if the id had been put off.
local function put_back(id)
  local score = tonumber(call('ZSCORE', Q, id) or 0)
  if score < AWAY or score >= 2 * AWAY then return false end
  call('ZADD', Q, 'XX', string.format('%.6f', score - AWAY), id)
  return true
end

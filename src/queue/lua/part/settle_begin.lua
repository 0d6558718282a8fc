-- settle_begin: the arguments of every call with results, and its first reads.
-- Needs   seen unmark; B C R D: QBACKUP QCONTEXT QRETRY QDELIVERY; call match; ARGV[3]: the
--         daemon's last call, if these are its last deliveries;
--         hooks: a table with
--         leave(tags): called before they leave QBACKUP, for QRETRY or for good
-- Gives   now; out: the answer so far; retries: QRETRY may have entries; nobody: a name
--         that no zset or hash has; over, instance: the record of the daemon's pops may
--         go; text(e): an error's text; token(value) of QDELIVERY, and its mark;
--         not_ours(live, token): the answer for a token that is not that of the tag;
--         forget(tags): deletes deliveries that are done
call('HLEN', D)
local instance, last = match(ARGV[3], '^(.*)%.(%d+)$')
local over = instance and pops_of(instance)
over = over and over[2] == tonumber(last)
local retries = call('ZRANGE', R, 0, 0)[1] ~= nil
local t = call('TIME')
local now = t[1] + t[2] / 1e6
-- Writes nothing, but goes first so that maxmemory does not refuse the later commands.
-- It also shows whether fields of QDELIVERY may be deleted.
local nobody = '\0' .. t[1] .. t[2]
call('HDEL', C, nobody)
if hooks.leave then call('ZREM', B, nobody) end
local out = {string.format('%.6f', now), ''}

-- An error's text.  Redis before 7.2 does not name the command that is not permitted.
-- So this calls each command of the script in a way that changes nothing, until Redis
-- refuses one.
local function text(e)
  e = type(e) == 'table' and e.err or tostring(e)
  if not string.find(e, "can't run", 1, true) then return e end
  for _, words in ipairs({{'HMGET', D, nobody}, {'HGET', D, nobody}, {'HSTRLEN', C, nobody},
      {'HEXISTS', C, nobody}, {'ZSCORE', B, nobody}, {'ZMSCORE', B, nobody}, {'ZREM', B, nobody},
      {'ZADD', R, 'XX', 0, nobody}, {'XPENDING', R, nobody}, {'XACK', R, nobody, '0-0'}}) do
    local answer = redis.pcall(unpack(words))
    if type(answer) == 'table' and answer.err and string.find(answer.err, "can't run", 1, true) then
      return words[1] .. ': ' .. e
    end
  end
  return 'HSET: ' .. e
end

local function token(value)
  return unmark(match(string.sub(value or '', 1, 300), '^%d+ %d+ (%S+)'))
end

-- The answer for a token that is not that of the tag; live: the tag is in a zset.
local function not_ours(live, tok)
  if seen(tok) then return live and 'held' or 'gone' end
  return live and 'held lost' or 'lost'
end

local function forget(tags)
  if hooks.leave then hooks.leave(tags) end
  call('ZREM', B, unpack(tags))
  if retries then call('ZREM', R, unpack(tags)) end
  call('HDEL', C, unpack(tags))
  call('HDEL', D, unpack(tags))
end

-- tick_begin: the arguments of every tick, and its first reads.
-- Needs   B C R D: QBACKUP QCONTEXT QRETRY QDELIVERY
-- Gives   lease foreign requeue batch room rank cursor, now stamp judged; nobody: a
--         name that no zset or hash has; the
--         counts of the answer; hooks: a table that the script may fill; attempt(f):
--         calls f.  After an error it returns false, and the error, with the command
--         before it, becomes the answer's warning; the rest of the tick goes on
local call = redis.call
local lease, foreign, requeue = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3] == '1'
local batch, room, rank, cursor = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8]

local t = call('TIME')
local now = t[1] + t[2] / 1e6
local stamp = string.format('%.6f', now)
local nobody = '\0' .. stamp
local judged = math.min(now, tonumber(ARGV[4]))
call('HLEN', C)
call('ZCARD', R)
call('HLEN', D)
local hooks = {}
local requeued, promoted, dropped, bytes, looked, more, warning = 0, 0, 0, 0, 0, 0, ''
local expires = math.huge

local function attempt(f)
  local plain, last = call, ''
  call = function(command, ...)
    last = command
    return plain(command, ...)
  end
  local ok, e = pcall(f)
  call = plain
  if not ok and warning == '' then
    warning = last .. ': ' .. (type(e) == 'table' and e.err or tostring(e))
  end
  return ok
end

-- reclaim: makes due what a pop has taken whose reply was lost, or which has failed.
--
-- KEYS    QBACKUP QRETRY QDELIVERY QCONTEXT
-- ARGV    call       of the pop
--         from       Redis seconds; earlier deliveries are not looked at ("0": all)
--         offset     from there; 0, or what the last page returned
--         crash      "1": counts a crash of each that is large: a small message does not end
--                    a connection, but waits behind one that does
--         page       entries looked at, <= 500; fewer if their tags are large
-- Returns {now, n, from, offset}: how many are due now; from: "" after the last page
-- Effect  Each is in QRETRY, due now, before it leaves QBACKUP.  It keeps its counts, and
--         the mark of a cancelled one; it has no token.
-- Again   Finds none.
local B, R, D, C = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local call, large = redis.call, 65536
local offset, crash, page = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
--@ include mark
--@ include taken_by

local t = call('TIME')
local stamp = string.format('%.6f', t[1] + t[2] / 1e6)
call('ZCARD', R)
call('HLEN', C)
local found, from, past = taken_by(ARGV[1] .. '.', ARGV[2], offset, page)
-- These change nothing.  They go first so that maxmemory refuses none of the later
-- commands, and so that a missing permission shows before the first change.
call('ZREM', B, '\0' .. stamp)
call('ZADD', R, 'XX', 0, '\0' .. stamp)
for _, m in ipairs(found) do
  local tag, a, c, _, idlen, front = unpack(m)
  if crash == 1 and call('HSTRLEN', C, tag) >= large then c = c + 1 end
  call('HSET', D, tag, a .. ' ' .. c .. ' ' .. (front or '') .. '- ' .. stamp .. ' ' .. idlen)
  call('ZADD', R, stamp, tag)
  call('ZREM', B, tag)
end
-- Those of this page that are gone no longer stand before the next one.
return {stamp, #found, from, past > 0 and past - #found or 0}

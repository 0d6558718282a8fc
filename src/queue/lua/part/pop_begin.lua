-- pop_begin: the arguments of every pop, and its first reads.
-- Needs   seen; B C R D P K: QBACKUP QCONTEXT QRETRY QDELIVERY QPAUSED QRATE
-- Gives   n room max deadline; name: tokens begin with it; nobody: a name that no zset
--         or hash has; now stamp, first: first time in QRETRY or nil;
--         hooks: an empty table, which the script may fill for other parts;
--         late: a later call of this daemon has acted already;
--         sign(hset): adds to the first HSET of QDELIVERY the note that Redis has seen
--         this call
local call, find, match, sub = redis.call, string.find, string.match, string.sub
local n, room, max = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local name, deadline = ARGV[4] .. '.', tonumber(ARGV[5])
local nobody = '\0' .. name
local hooks = {}

local t = call('TIME')
local now = t[1] + t[2] / 1e6
local stamp = string.format('%.6f', now)
local first = call('ZRANGE', R, 0, 0, 'WITHSCORES')[2]
call('HLEN', C)
local instance, number = match(ARGV[4], '^(.*)%.(%d+)$')
number = tonumber(number)
local before = pops_of(instance)
local late = before and before[2] > number

local signed = false
local function sign(hset)
  if signed then return end
  signed = true
  local from = before and before[2] >= tonumber(ARGV[10]) and before[1] or number
  hset[#hset + 1], hset[#hset + 2] = set_pops(instance, from, number, stamp)
end

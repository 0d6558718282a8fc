-- dead_import: makes a dead letter of one that was exported.
--
-- KEYS    QDEAD
-- ARGV    letter     its number in QDEAD when it was exported; "": not known
--         field value ...
-- Returns 1; 0 if QDEAD has this letter already: the same number, id and message
-- Effect  The letter is in QDEAD, under its own number if that is newer than all numbers
--         that QDEAD has had, else under a new one.  A number in the future becomes a new
--         one, too: later letters would get numbers beyond it.
-- Again   Safe to repeat if it has its own number; otherwise it adds a second letter.
local X, number, call = KEYS[1], ARGV[1], redis.call

local function is_the_same(there)
  local new, old = {}, {}
  for i = 2, #ARGV, 2 do new[ARGV[i]] = ARGV[i + 1] end
  for i = 1, #there, 2 do old[there[i]] = there[i + 1] end
  return old.id == new.id and old.message == new.message
end

local t = call('TIME')
if number ~= '' and tonumber(string.match(number, '^%d+')) <= t[1] * 1000 + t[2] / 1000 then
  local there = call('XRANGE', X, number, number)[1]
  if there and is_the_same(there[2]) then return 0 end
  local r = redis.pcall('XADD', X, number, unpack(ARGV, 2))
  if type(r) ~= 'table' or not r.err then return 1 end
  -- Any other error is raised here: Redis before 7.2 names the command by the line.
  if not string.find(r.err, 'equal or smaller', 1, true) then
    call('XADD', X, number, unpack(ARGV, 2))
    return 1
  end
end
call('XADD', X, '*', unpack(ARGV, 2))
return 1

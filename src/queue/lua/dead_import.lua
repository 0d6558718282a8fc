-- dead_import: makes a dead letter of one that was exported.
--
-- KEYS    QDEAD
-- ARGV    letter     its id in QDEAD when it was exported; "": not known
--         field value ...
-- Returns 1; 0 if QDEAD has a letter with that id already
-- Effect  The letter is in QDEAD, under its own id if that is newer than all ids
--         that QDEAD has had, else under a new one.
-- Again   Safe to repeat if it has its own id; otherwise it adds a second letter.
local X, id, call = KEYS[1], ARGV[1], redis.call
if id ~= '' then
  if #call('XRANGE', X, id, id) > 0 then return 0 end
  local r = redis.pcall('XADD', X, id, unpack(ARGV, 2))
  if type(r) ~= 'table' or not r.err then return 1 end
  if not string.find(r.err, 'equal or smaller', 1, true) then return r end
end
call('XADD', X, '*', unpack(ARGV, 2))
return 1

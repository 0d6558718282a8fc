-- unique_push: puts ids into the zset of kind "unique".
--
-- KEYS    Q
-- ARGV    at         Redis seconds, or "" for
--         delay      seconds from now
--         id ...
-- Returns how many ids are new; the others wait already
-- Effect  Each id is due at that time, or earlier if it was, even if it was put off
--         while it runs.  At maxmemory Redis refuses it like any producer's command.
-- Again   Changes nothing, or makes an id due earlier whose time was set since.
local Q, C = KEYS[1], nil
local call = redis.call
--@ include unique
local t = call('TIME')
local at = tonumber(ARGV[1]) or t[1] + t[2] / 1e6 + tonumber(ARGV[2])
local score, added = string.format('%.6f', at), 0
for i = 3, #ARGV do
  put_back(ARGV[i])
  added = added + call('ZADD', Q, 'LT', score, ARGV[i])
end
return added

-- unique_push: puts ids into the zset of kind "unique".
--
-- KEYS    Q
-- ARGV    at         Redis seconds, or "" for
--         delay      seconds from now
--         id ...
-- Returns how many were not there; the others wait already
-- Effect  Each is due then, or before if it was, also if it was put off while it
--         runs.  At maxmemory it is refused as any producer's command is.
-- Again   Changes nothing, or brings a time nearer that was set since.
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

-- body: the payload of one delivery.
--
-- KEYS    QCONTEXT QDELIVERY
-- ARGV    tag token
-- Returns the payload; nil where the delivery has another token, or no payload
-- Effect  None: reads only.
-- Again   Reads again.
local value = redis.call('HGET', KEYS[2], ARGV[1])
if string.match(string.sub(value or '', 1, 300), '^%d+ %d+ (%S+)') ~= ARGV[2] then return false end
return redis.call('HGET', KEYS[1], ARGV[1])

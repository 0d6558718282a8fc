-- body: the payload of one delivery.
--
-- KEYS    QCONTEXT QDELIVERY
-- ARGV    tag token
-- Returns the payload; nil if the delivery has another token, or no payload
-- Effect  None: reads only.
-- Again   Reads again.
--@ include mark
local value = redis.call('HGET', KEYS[2], ARGV[1])
local token = unmark(string.match(string.sub(value or '', 1, 300), '^%d+ %d+ (%S+)'))
if token ~= ARGV[2] then return false end
return redis.call('HGET', KEYS[1], ARGV[1])

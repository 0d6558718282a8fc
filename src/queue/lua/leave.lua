-- leave: removes a consumer of a stream's group, if nothing is pending for it.
--
-- KEYS    Q
-- ARGV    group consumer
-- Returns how many were removed
-- Effect  The consumer is gone.  A pop under its name makes it again.
-- Again   Finds nothing, or what a pop has made since.
--@ sources stream
local Q, group, consumer, call = KEYS[1], ARGV[1], ARGV[2], redis.call
if call('EXISTS', Q) == 0 then return 0 end
-- What is pending for it would be lost with it.
if call('XPENDING', Q, group, '-', '+', 1, consumer)[1] then return 0 end
call('XGROUP', 'DELCONSUMER', Q, group, consumer)
return 1

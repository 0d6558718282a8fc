-- stream_show: tells people where an entry is.
--
-- KEYS    Q
-- ARGV    group
--         id         an entry's
-- Returns {state, message, consumer, idle, deliveries}; state: "": there is no such
--         entry; "waiting"; "pending"; or "done": delivered and acknowledged.
--         consumer, idle: of a pending entry its consumer, and milliseconds since its
--         delivery; of others "" and 0
-- Effect  None: reads only.
-- Again   Reads again.
local Q, group, id, call = KEYS[1], ARGV[1], ARGV[2], redis.call
--@ include stream_entry
--@ include stream_message
--@ include stream_new
local e = entry(id) and call('XRANGE', Q, id, id)[1]
if not e then return {'', '', '', 0, 0} end
local body, row, last = message(e[2], 16777216), rows(id, id, 1)[1], position()
if row then return {'pending', body, row[2], row[3], row[4]} end
local unseen = not last or beyond(last) and call('XRANGE', Q, beyond(last), id, 'COUNT', 1)[1]
return {unseen and 'waiting' or 'done', body, '', 0, 0}

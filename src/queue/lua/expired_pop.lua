-- expired_pop: like pop.lua, but each message is the name of a key, and that name is
-- its id.
--
-- KEYS    Q QBACKUP QCONTEXT QRETRY QDELIVERY QPAUSED QRATE QSTATS
-- ARGV    as in pop.lua
-- Returns as pop.lua
-- Effect  as pop.lua
-- Again   as pop.lua
--
-- If a name cannot be an id (1 to 200 bytes, no control characters), the id is "~" and
-- the token.
local Q, B, C, R, D, P, K, S = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8]
--@ include seen
--@ include mark
--@ include pop_begin
--@ include pause
local waiting = call('LLEN', Q)
--@ include pop_gate
--@ include pop_list_prove

local function ident(s)
  if #s < 1 or #s > 200 or find(s, '[%z\1-\31\127]') then return nil end
  return s
end

--@ include pop_retries

--@ include pop_list
--@ include pop_turns

waiting = waiting - took
--@ include pop_count
--@ include pop_end

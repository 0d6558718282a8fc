-- pushes: pushes the messages that deliveries hand over to lists of other queues.
-- Needs   call; targets: how many KEYS stand before those of the lists
-- Gives   gather(a): gathers the messages at a of ARGV for push_all(): N, then N times
--         TARGET COUNT MESSAGE ...; or returns why that cannot be, and gathers nothing
--         past(a): where ARGV goes on after them
--         push_all(): pushes all that was gathered; false: nothing is pushed, because a
--         list has refused it; from now on gather() returns that for this list
--         undo(): removes what was pushed since keep(); keep(): makes it final
--
-- Before a push the script tests whether it could remove it: LTRIM 0 -1 removes nothing.
local gathered, pushed, troubles = {}, {}, {}

local function trouble(answer, command)
  local e = type(answer) == 'table' and answer.err
  -- Redis before 7.2 does not say which command is not permitted.
  return e and (string.find(e, "can't run", 1, true) and command .. ': ' .. e or e)
end

-- The reason why the list cannot be pushed to; false: none is known.
local function trouble_of(target)
  if troubles[target] == nil then
    local key = KEYS[targets + target]
    troubles[target] = trouble(redis.pcall('LLEN', key), 'LLEN') or
        trouble(redis.pcall('LTRIM', key, 0, -1), 'LTRIM') or false
  end
  return troubles[target]
end

local function past(a)
  local n = tonumber(ARGV[a])
  a = a + 1
  for _ = 1, n do a = a + 2 + tonumber(ARGV[a + 1]) end
  return a
end

local function gather(a)
  local last = past(a) - 1
  local at = a + 1
  while at <= last do
    local why = trouble_of(tonumber(ARGV[at]))
    if why then return 'cannot push to ' .. KEYS[targets + ARGV[at]] .. ': ' .. why end
    at = at + 2 + tonumber(ARGV[at + 1])
  end
  at = a + 1
  while at <= last do
    local target, count = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
    local list = gathered[target] or {}
    gathered[target] = list
    for i = at + 2, at + 1 + count do list[#list + 1] = ARGV[i] end
    at = at + 2 + count
  end
end

local function undo()
  for target, count in pairs(pushed) do call('LTRIM', KEYS[targets + target], count, -1) end
  pushed = {}
end

local function keep() pushed = {} end

local function push_all()
  local lists = gathered
  gathered = {}
  for target, list in pairs(lists) do
    for i = 1, #list, 50 do
      local last = math.min(i + 49, #list)
      local why = trouble(redis.pcall('LPUSH', KEYS[targets + target], unpack(list, i, last)), 'LPUSH')
      if why then
        troubles[target] = why
        undo()
        return false
      end
      pushed[target] = last
    end
  end
  return true
end

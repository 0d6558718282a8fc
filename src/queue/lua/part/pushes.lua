-- pushes: what deliveries hand over, in lists of other queues.
-- Needs   call; targets: how many KEYS stand before those of the lists
-- Gives   push(a): pushes what ARGV has at a: N, then N times TARGET COUNT MESSAGE ...;
--         the answer where that cannot be, and nothing of it is pushed then, else nil
--         past(a): where ARGV goes on behind it
--         undo(): takes back all that was pushed since keep()
--         keep(): what was pushed is there to stay
--
-- Who could refuse to take a push back is asked before it: LTRIM 0 -1 removes nothing.
local pushed, troubles = {}, {}

local function trouble(answer, command)
  local e = type(answer) == 'table' and answer.err
  -- Redis before 7.2 does not say which command is not permitted.
  return e and (string.find(e, "can't run", 1, true) and command .. ': ' .. e or e)
end

-- Why the list cannot be pushed to; false if nothing is known.
local function trouble_of(target)
  if troubles[target] == nil then
    local key = KEYS[targets + target]
    troubles[target] = trouble(redis.pcall('LLEN', key), 'LLEN') or
        trouble(redis.pcall('LTRIM', key, 0, -1), 'LTRIM') or false
  end
  return troubles[target]
end

local function take_back(counts)
  for target, count in pairs(counts) do call('LTRIM', KEYS[targets + target], count, -1) end
end

local function undo()
  take_back(pushed)
  pushed = {}
end

local function keep() pushed = {} end

local function past(a)
  local n = tonumber(ARGV[a])
  a = a + 1
  for _ = 1, n do a = a + 2 + tonumber(ARGV[a + 1]) end
  return a
end

-- As much as unpack() may take: some 8000 values would be too many.
local function push_list(target, from, to, counts)
  for i = from, to, 50 do
    local last = math.min(i + 49, to)
    troubles[target] = trouble_of(target) or trouble(redis.pcall('LPUSH', KEYS[targets + target],
        unpack(ARGV, i, last)), 'LPUSH') or false
    if troubles[target] then return troubles[target] end
    counts[target] = (counts[target] or 0) + last - i + 1
  end
end

local function push(a)
  local counts, n = {}, tonumber(ARGV[a])
  a = a + 1
  for _ = 1, n do
    local target, count = tonumber(ARGV[a]), tonumber(ARGV[a + 1])
    local why = push_list(target, a + 2, a + 1 + count, counts)
    if why then
      take_back(counts)
      return 'cannot push to ' .. KEYS[targets + target] .. ': ' .. why
    end
    a = a + 2 + count
  end
  for target, count in pairs(counts) do pushed[target] = (pushed[target] or 0) + count end
end

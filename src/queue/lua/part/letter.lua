-- letter: makes a dead letter.
-- Needs   X: QDEAD; dead_max: letters to keep, "0": all; host
-- Gives   letter(id, message, reason, attempts, status, error, answer): the words of the
--         command that writes it, without an empty answer; deferred(error): the answer
--         if Redis refused that
--
-- Only the first letter of a call drops old ones: after dead_max was lowered they may be
-- very many.  500 are more than a call writes.
local function letter(id, message, reason, attempts, status, error, answer)
  local words = {'XADD', X, 'MAXLEN', '~', dead_max, 'LIMIT', '500'}
  if dead_max == '0' then words = {'XADD', X} end
  dead_max = '0'
  for _, w in ipairs({'*', 'id', id, 'message', message, 'reason', reason, 'attempts', attempts,
      'status', status, 'error', error, 'host', host}) do
    words[#words + 1] = w
  end
  if answer ~= '' then
    words[#words + 1] = 'answer'
    words[#words + 1] = answer
  end
  return words
end

-- Redis before 7.2 does not say which command is not permitted.
local function deferred(e)
  return 'deferred ' .. (string.find(e.err, "can't run", 1, true) and 'XADD: ' or '') .. e.err
end

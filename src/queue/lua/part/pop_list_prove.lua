-- pop_list_prove: tests the permissions that a pop from a list needs.
-- Needs   pop_begin; waiting; hooks
-- Gives   hooks.prove: see pop_retries
hooks.prove = function(due)
  if waiting == 0 then return end
  call('LTRIM', Q, 0, -1)
  if due then
    call('LINDEX', Q, -1)
    call('ZMSCORE', B, nobody)
  end
end

-- tick_end: adds the counters, and makes the answer.
-- Needs   tick_begin; waiting, delayed: as answered; counters: where in ARGV they begin;
--         hooks.scan: where the next step goes on in the source, nil if it need not;
--         hooks.so_far, hooks.others: see tick_list; nil: not of this kind
local due = call('ZRANGE', R, 0, 0, 'WITHSCORES')[2] or ''
for i = counters, #ARGV - 1, 2 do redis.pcall('HINCRBY', S, ARGV[i], ARGV[i + 1]) end
return {stamp, more, requeued, promoted, dropped, waiting,
  expires < math.huge and string.format('%.6f', expires) or '',
  due, delayed, rank, cursor, warning, hooks.scan or '', hooks.so_far or -1, hooks.others or 0}

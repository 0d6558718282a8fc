# A worker of beanstalkd: as rqd does, it runs a program with the message on stdin.
require 'beaneater'
tube = ARGV.fetch(0)
run = ARGV.fetch(1) == 'run'
queue = Beaneater.new("127.0.0.1:#{ENV.fetch('BENCH_BEANSTALK')}")
queue.tubes.watch!(tube)
loop do
  job = queue.tubes.reserve
  IO.popen([ENV.fetch('BENCH_STAMP'), ENV.fetch('BENCH_STAMPS')], 'w') { |io| io.write(job.body) } if run
  job.delete
end

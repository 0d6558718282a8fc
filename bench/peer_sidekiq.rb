# Jobs of Sidekiq: as rqd does, they run a program with the message on stdin.
require 'sidekiq'
url = ENV.fetch('BENCH_REDIS')
Sidekiq.configure_server { |c| c.redis = { url: url } }

class PeerRun
  include Sidekiq::Worker
  def perform(text)
    IO.popen([ENV.fetch('BENCH_STAMP'), ENV.fetch('BENCH_STAMPS')], 'w') { |io| io.write(text) }
  end
end

class PeerNoop
  include Sidekiq::Worker
  def perform(text); end
end

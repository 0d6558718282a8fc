#!/usr/bin/ruby
# Runs a Ruby script once for each message, each time in a new process, without starting
# the interpreter again: a persistent handler that loads libraries once and forks.
#
#	queue "orders" {
#	    command     = {"/usr/local/bin/forking.rb", "/usr/local/bin/ship-order.rb",
#	                   "json", "net/http"}          # the script, and libraries to load
#	    user        = "orders"
#	    mode        = "persistent"
#	    concurrency = 4
#	}
#
# The script is one for mode "exec", unchanged unless it reads DATA: the message is on
# standard input, RQD_ID and RQD_ATTEMPT are in the environment, and the exit status
# decides.  Status 65 makes a dead letter.
#
# The libraries must not start threads or open connections: all processes would share
# them.  Processes that the script leaves behind run until the queue's process ends.

require 'tempfile'

DEAD = 65	# the script's status for a message that can never succeed

# Gives this process what a handler in mode "exec" has.
def set_message(attempt, id, message)
  ENV['RQD_ATTEMPT'] = attempt
  ENV['RQD_ID'] = id
  Tempfile.create('message') do |file|
    File.unlink(file)
    file.binmode.write(message)
    file.rewind
    $stdin.reopen(file)
  end
end

def verdict(status)
  return 'ok' if status.success?
  return "dead exit status #{DEAD}" if status.exitstatus == DEAD
  return "retry killed by signal #{status.termsig}" if status.signaled?

  "retry exit status #{status.exitstatus}"
end

# The pipes to rqd move to other descriptors, which programs do not inherit.  So nothing
# else can read a message, and what is printed goes to the log.
requests = $stdin.dup.binmode
answers = $stdout.dup
answers.sync = true
$stdout.reopen($stderr)
$stdin.reopen(File::NULL)

script = ARGV.shift
ARGV.each { |library| require library }
ARGV.clear
$PROGRAM_NAME = script

while (header = requests.gets)
  number, attempt, length, id = header.chomp("\n").split(/ /, 4)
  message = requests.read(length.to_i)
  break if requests.read(1) != "\n"	# the daemon has gone in the middle of a message

  pid = fork do
    requests.close
    answers.close
    set_message(attempt, id, message)
    load script
  end
  status = Process.wait2(pid).last
  # A command was not found: rqd suspends the queue.
  exit!(status.exitstatus) if [126, 127].include?(status.exitstatus)
  answers.puts("#{number} #{verdict(status)}")
end

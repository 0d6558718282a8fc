#!/bin/sh
# The handlers of doc/other-systems.md, with the real libraries as producers: Sidekiq, Laravel's
# queue, Celery; Resque, or its format.  Then rqd beside workers of Sidekiq and of Celery.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

DOC=$SRCDIR/doc/other-systems.md
command -v python3 >/dev/null || skip_all 'no python3'
PYTHON=/usr/bin/python3		# Debian's modules are there
MORE_KEYS='queue:orders queue:text queue:many queues schedule schedule:refused processes process_cleanup stat:processed stat:failed resque:queue:orders resque:queues
	queues:orders queues:orders:delayed queues:orders:notify celery-orders celery-orders:3'
PORT=$(free_port)
redis_start --port "$PORT" --bind 127.0.0.1

program() {	# NAME FILE
	python3 "$SRCDIR/tests/docs/blocks.py" --program "$1" "$DOC" |
	    sed "s/-h 127.0.0.1/& -p $PORT/" >"$T/$2"
	chmod 755 "$T/$2"
	ok "[ -s '$T/$2' ]" "the document has the program $1"
}
program sidekiq sidekiq-job
program sidekiq-due sidekiq-due
program laravel laravel-job
program celery celery-task
sed 's/\.new\.perform/.perform/' "$T/sidekiq-job" >"$T/resque-job"
chmod 755 "$T/resque-job"
: >"$T/done" && chmod 666 "$T/done"

# -- the applications -------------------------------------------------------------------
cat >"$T/jobs.rb" <<R
class ShipOrder
  def perform(order, to) = File.write("$T/done", "sidekiq #{order} #{to}\n", mode: "a")
  def self.perform(order, to) = File.write("$T/done", "resque #{order} #{to}\n", mode: "a")
end
R
cat >"$T/sidekiq.rb" <<R
require "sidekiq"
Sidekiq.configure_client { |c| c.redis = { url: "redis://127.0.0.1:$PORT" } }
Sidekiq.configure_server { |c| c.redis = { url: "redis://127.0.0.1:$PORT" } }
require "$T/jobs"
class ShipOrder
  include Sidekiq::Worker
  sidekiq_options queue: "orders"
end
R
cat >"$T/queue.php" <<'P'
<?php
foreach (glob('/usr/share/php/Illuminate/*/autoload.php') as $file)
	require_once $file;
class ShipOrder {
	public $order;
	function __construct($order) { $this->order = $order; }
	function handle() { file_put_contents(getenv('DONE'), "laravel {$this->order}\n", FILE_APPEND); }
}
P
cat >"$T/shop.py" <<P
import os
from celery import Celery
app = Celery("shop", broker="redis://127.0.0.1:$PORT", include=["more"])
app.conf.broker_transport_options = {"sep": ":"}

@app.task
def ship(order, to=None):
    with open("$T/done", "a") as f:
        f.write(f"celery {order} {to} {os.environ.get('RQD_QUEUE', 'worker')}\n")
P
# A module that only workers import, with a class and a task that has a self.
cat >"$T/more.py" <<P
from shop import app, ship

class Bill(app.Task):
    def run(self, order):
        ship(order, to="class")

app.register_task(Bill())

@app.task(bind=True)
def pack(self, order):
    ship(order, to=self.name)
P
chmod 644 "$T/jobs.rb" "$T/sidekiq.rb" "$T/queue.php" "$T/shop.py" "$T/more.py"

rqd_start <<C
queue "sidekiq" {
	key = "queue:orders" id = "jid" command = {"$(command -v ruby)", "$T/sidekiq-job"}
	env = {"JOBS=$T/jobs.rb"}
}
schedule "sidekiq-due" { queue = "sidekiq-due" every = 1s }
queue "sidekiq-due" { command = {"$T/sidekiq-due"} fleet_concurrency = 1 }
queue "resque" {
	key = "resque:queue:orders" pop = "left" command = {"$(command -v ruby)", "$T/resque-job"}
	env = {"JOBS=$T/jobs.rb"}
}
queue "laravel" {
	key = "queues:orders" pop = "left" delayed_key = "queues:orders:delayed"
	command = {"$(command -v php)", "$T/laravel-job"} env = {"APP=$T/queue.php", "DONE=$T/done"}
}
queue "celery" {
	key = "celery-orders" command = {"$PYTHON", "$T/celery-task"} env = {"PYTHONPATH=$T"}
	suspend_after = 0
}
queue "urgent" {
	key = "celery-orders:3" command = {"$PYTHON", "$T/celery-task"} env = {"PYTHONPATH=$T"}
}
C
# Messages that are none of the library's: dead letters of the first attempt.
refuses() {	# QUEUE KEY MESSAGE ...
	queue=$1 key=$2 before=$(log_count "event=dead queue=$1 ")
	shift 2
	for m; do r rpush "$key" "$m" >/dev/null; done
	ok "log_wait 20 'event=dead queue=$queue id=[^ ]* attempt=1 .*reason=(status|answer)' $((before + $#))" \
	    "$queue: what is no job is a dead letter at once"
}
done_wait() { wait_ok 40 "grep -qx '$1' '$T/done'" "$2"; }

# -- Sidekiq ------------------------------------------------------------------------------
r set queue:text x >/dev/null
r zadd schedule 1 'no JSON' 1 7 1 '{"class":"ShipOrder"}' 1 '{"queue":7}' 1 '{"queue":"text"}' >/dev/null
seq 250 | sed "s/.*/ZADD schedule 2 '{\"queue\":\"many\",\"jid\":\"&\"}'/" | r >/dev/null
wait_ok 20 '[ "$(r llen queue:many)" -eq 250 ]' 'Sidekiq: entries of the schedule that are no jobs stop no others'
is "$(r llen schedule:refused) $(r zcard schedule)" '5 0' 'Sidekiq: they are set aside'
# By itself, with a password: rqd and the producers of this test have none.
due() { env -i PATH="$PATH" "$@" "$T/sidekiq-due" >"$T/said" 2>&1; }
r config set requirepass secret >/dev/null
due REDISCLI_AUTH=secret
is $? 0 'Sidekiq: due jobs are moved with a password' || note "$(cat "$T/said")"
due
is $? 1 'Sidekiq: without it the message is tried again'
REDISCLI_AUTH=secret redis-cli -s "$SOCK" config set requirepass '' >/dev/null
HAS_SIDEKIQ=no
if ruby -e 'require "sidekiq"' 2>/dev/null; then
	HAS_SIDEKIQ=yes
	cat >"$T/push.rb" <<R
require "$T/sidekiq"
puts ShipOrder.perform_async(7, "Bonn")
puts ShipOrder.perform_in(2, 8, "Ulm")
R
	jid=$(ruby "$T/push.rb" 2>"$T/said" | grep -v INFO: | head -n 1)
	done_wait 'sidekiq 7 Bonn' 'Sidekiq: a job of perform_async' || note "$(cat "$T/said")"
	ok "[ -n '$jid' ] && log_wait 10 'event=acked queue=sidekiq id=$jid '" 'Sidekiq: the jid is the id'
	done_wait 'sidekiq 8 Ulm' 'Sidekiq: a job of perform_in'
	wait_ok 10 '[ "$(r zcard schedule)" -eq 0 ]' 'Sidekiq: which has left the schedule'
else
	skip 'Sidekiq: ruby-sidekiq is not installed'
fi
if command -v ruby >/dev/null; then
	r lpush queue:orders '{"class":"Kernel","args":["x"],"jid":"odd"}' >/dev/null
	ok 'log_wait 20 "event=dead queue=sidekiq id=odd "' 'Sidekiq: a class of another queue is a dead letter'
	refuses sidekiq queue:orders 'no JSON' 7 '["class"]' '' "$(printf '{"class":"\377"}')"

	# -- Resque -------------------------------------------------------------------------
	if ruby -e 'require "resque"' 2>/dev/null; then
		ruby -e "require 'resque'; Resque.redis = '127.0.0.1:$PORT'; require '$T/jobs'
		    class ShipOrder; @queue = :orders; end
		    Resque.enqueue(ShipOrder, 7, 'Bonn'); Resque.enqueue(ShipOrder, 8, 'Ulm')"
	else
		skip 'Resque: the library is not installed; the next test pushes its format'
		r sadd resque:queues orders >/dev/null
		r rpush resque:queue:orders '{"class":"ShipOrder","args":[7,"Bonn"]}' >/dev/null
		r rpush resque:queue:orders '{"class":"ShipOrder","args":[8,"Ulm"]}' >/dev/null
	fi
	done_wait 'resque 8 Ulm' 'Resque: a second job'
	is "$(grep ^resque "$T/done" | tr '\n' ,)" 'resque 7 Bonn,resque 8 Ulm,' 'Resque: after the first'
else
	skip 'Sidekiq, Resque: no ruby'
fi

# -- Laravel ------------------------------------------------------------------------------
if php -r 'new Redis(); require "/usr/share/php/Illuminate/Queue/autoload.php";
    require "/usr/share/php/Illuminate/Redis/autoload.php";' >/dev/null 2>&1; then
	cat >"$T/push.php" <<P
<?php
require '$T/queue.php';
\$redis = new Illuminate\\Redis\\RedisManager(new Illuminate\\Container\\Container, 'phpredis',
    ['default' => ['host' => '127.0.0.1', 'port' => $PORT, 'database' => 0]]);
\$queue = new Illuminate\\Queue\\RedisQueue(\$redis, 'orders', 'default');
\$queue->setContainer(new Illuminate\\Container\\Container);
\$queue->later(6, new ShipOrder(9), '', 'orders');
echo \$queue->push(new ShipOrder(7), '', 'orders'), "\\n";
\$queue->push(new ShipOrder(8), '', 'orders');
P
	id=$(php "$T/push.php" 2>"$T/said")
	done_wait 'laravel 9' 'Laravel: a delayed job' || note "$(cat "$T/said")"
	is "$(grep ^laravel "$T/done" | tr '\n' ,)" 'laravel 7,laravel 8,laravel 9,' 'Laravel: jobs in their order'
	ok "[ -n '$id' ] && log_wait 10 'event=acked queue=laravel id=$id '" "Laravel: its id is the message's"
	is "$(r llen queues:orders:notify)" 2 'Laravel: the list of notifications grows, as the document says'
	r rpush queues:orders '{"data":{"command":"O:8:\"stdClass\":0:{}"},"id":"odd"}' >/dev/null
	ok 'log_wait 20 "event=dead queue=laravel id=odd "' 'Laravel: what is no job is a dead letter'
	refuses laravel queues:orders 'no JSON' 7 '"x"' '' '{"data":{"command":["x"]}}' '{"data":{"command":"O:3:\"Foo\":0:{}"}}'
else
	skip 'Laravel: php-redis, php-illuminate-queue or php-illuminate-redis is not installed'
fi

# -- Celery -------------------------------------------------------------------------------
HAS_CELERY=no
celery() { (cd "$T" && timeout 60 "$PYTHON" -c "import shop
$1" 2>"$T/said"); }
if "$PYTHON" -c 'import celery, redis' 2>/dev/null; then
	HAS_CELERY=yes
	# Alone: its handler must start before the countdown ends.
	celery 'shop.ship.apply_async((8,), countdown=10, queue="celery-orders")' >/dev/null || note "$(cat "$T/said")"
	ok 'log_wait 20 "event=deferred queue=celery "' 'Celery: a task with a countdown is deferred'
	celery 'shop.ship.apply_async((7,), {"to": "Bonn"}, queue="celery-orders")
shop.app.send_task("shop.other", queue="celery-orders")
shop.app.send_task("more.Bill", (9,), queue="celery-orders")
shop.app.send_task("more.pack", (10,), queue="celery-orders")
shop.ship.apply_async((11,), queue="celery-orders", priority=3)' >/dev/null || note "$(cat "$T/said")"
	done_wait 'celery 7 Bonn celery' 'Celery: a task'
	ok 'log_wait 20 "event=dead queue=celery .*reason=answer"' 'Celery: an unknown task is a dead letter'
	done_wait 'celery 9 class celery' 'Celery: a task that is a class, of a module that "include" names'
	done_wait 'celery 10 more.pack celery' 'Celery: one that is bound'
	done_wait 'celery 11 None urgent' 'Celery: one with a priority'
	done_wait 'celery 8 None celery' 'Celery: the one with a countdown'
	refuses celery celery-orders 'no JSON' 7 '{}' '' '{"headers":{"task":"shop.ship","eta":null},"body":"x"}' \
	    '{"headers":{"task":"shop.ship","eta":"x"},"body":"W1tdLHt9LHt9XQ=="}'
else
	skip 'Celery: python3-celery is not installed'
fi

# -- side by side ------------------------------------------------------------------------
# Both take from one list: each job runs once, and either of them runs some.
: >"$T/done"
if [ $HAS_SIDEKIQ = yes ]; then
	(cd "$T" && exec sidekiq -r "$T/sidekiq.rb" -q orders -c 1) >"$T/sidekiq.log" 2>&1 &
	worker=$!
	wait_for 30 'r client list | grep -q cmd=brpop'
	ruby -e "require '$T/sidekiq'; 40.times { |i| ShipOrder.perform_async(i, 'Bonn') }" 2>/dev/null
	wait_ok 60 '[ "$(grep -c ^sidekiq "$T/done")" -ge 40 ] && [ "$(r llen queue:orders)" -eq 0 ]' 'rqd beside a Sidekiq worker: all jobs run'
	kill "$worker"
	wait "$worker"
	is "$(sort -u "$T/done" | grep -c ^sidekiq) $(grep -c ^sidekiq "$T/done")" '40 40' 'each once'
else
	skip 'beside a Sidekiq worker: ruby-sidekiq is not installed'
fi
if [ $HAS_CELERY = yes ]; then
	(cd "$T" && exec "$PYTHON" -m celery -A shop worker -Q celery-orders -P solo -l info --without-mingle --without-gossip --prefetch-multiplier 1) >"$T/celery.log" 2>&1 &
	worker=$!
	wait_for 30 'grep -q "ready" "$T/celery.log"'
	celery 'for i in range(40): shop.ship.apply_async((i,), queue="celery-orders")'
	wait_ok 60 '[ "$(grep -c ^celery "$T/done")" -ge 40 ] && [ "$(r llen celery-orders)" -eq 0 ]' 'rqd beside a Celery worker: all tasks run'
	kill "$worker"
	wait "$worker"
	is "$(grep ^celery "$T/done" | cut -d ' ' -f 2 | sort -u | wc -l) $(grep -c ^celery "$T/done")" '40 40' 'each once'
else
	skip 'beside a Celery worker: python3-celery is not installed'
fi

rqd_stop
# Keys of the libraries.
r keys '*' | grep -E '^(_kombu|unacked|stat:|processes|[^:]*:[0-9]+:[0-9a-f]+|celery|.*pidbox)' | while read -r key; do
	r del "$key" >/dev/null
done

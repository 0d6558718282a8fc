#!/usr/bin/python3
"""Compares rqd with other queue systems; called by ./peers, see README.md.

Each peer does the same work: a program per message that reads it on stdin (stamp.c:
its first instruction reads the clock), eight at once; and, where the peer runs jobs in
its workers, a job that does nothing, against rqd's persistent handlers.  All that a
round measures stands side by side in it; figures are medians over the rounds.
"""
import argparse
import json
import os
import random
import secrets
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

PYTHON = "/usr/bin/python3"
AT_ONCE = 8
PAD = "x" * 160

here = os.path.dirname(os.path.abspath(__file__))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(what, done, seconds=30):
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            raise RuntimeError(f"waited in vain for {what}")
        time.sleep(0.005)


def answers(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def connect(port):
    """For what is pushed without a client library; their costs differ much."""
    s = socket.create_connection(("127.0.0.1", port))
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


class World:
    """A directory, a Redis, and the processes that run in it."""

    def __init__(self, build):
        self.dir = tempfile.mkdtemp(prefix="rqd-peers.")
        self.build = build
        self.stamps = os.path.join(self.dir, "stamps")
        self.stamp = os.path.join(build, "bench", "stamp")
        self.port = free_port()
        self.log = open(os.path.join(self.dir, "log"), "ab")
        self.env = dict(os.environ, BENCH_STAMP=self.stamp, BENCH_STAMPS=self.stamps,
                        BENCH_PORT=str(self.port), PYTHONPATH=here,
                        BENCH_REDIS=f"redis://127.0.0.1:{self.port}/0")
        self.processes = []
        self.socket = os.path.join(self.dir, "redis")
        self.start("redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
                   "--dir", self.dir, "--unixsocket", self.socket)
        wait_for("redis-server", lambda: answers(self.port))
        import redis
        self.redis = redis.Redis(port=self.port)
        self.link = socket.socket(socket.AF_UNIX)
        self.link.connect(self.socket)

    def start(self, *argv, **more):
        more.setdefault("stdin", subprocess.DEVNULL)
        more.setdefault("stdout", self.log)
        p = subprocess.Popen(argv, stderr=self.log, start_new_session=True,
                             env=dict(self.env, **more.pop("env", {})), cwd=self.dir, **more)
        self.processes.append(p)
        return p

    def stop(self, p, how=signal.SIGTERM):
        if p.poll() is None:
            os.killpg(p.pid, how)
        try:
            p.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            p.wait()
        self.processes.remove(p)

    def close(self):
        for p in list(self.processes):
            self.stop(p)
        shutil.rmtree(self.dir)

    def read_stamps(self):
        """Pairs of latency in µs and time in ns."""
        try:
            with open(self.stamps, encoding="ascii") as f:
                return [(float(a), int(b)) for a, b in
                        (line.split() for line in f if line.endswith("\n"))]
        except FileNotFoundError:
            return []

    def stamped(self):
        try:
            with open(self.stamps, "rb") as f:
                return f.read().count(b"\n")
        except FileNotFoundError:
            return 0


class Peer:
    """One way to run a program for each message."""
    name = ""
    exec_count = 1000       # messages a round, for about a second of work
    noop_count = 0          # 0: it runs no jobs of its own
    pushes = 80             # for the latency, in a second
    latency = True

    def __init__(self, world):
        self.w = world
        self.workers = []

    def open(self):
        """Starts the broker, once."""

    def close(self):
        self.stop()

    def fill(self, n):
        """Queues n messages that begin with 0."""

    def fill_noop(self, n):
        """Queues n messages for jobs that do nothing."""
        self.fill(n)

    def push(self):
        """Queues one that begins with the time."""

    def work(self, noop=False):
        """Starts the workers."""

    def waiting(self):
        """How many messages of a no-op run are not done."""

    def clear(self):
        self.w.redis.flushall()

    def stop(self):
        for p in self.workers:
            self.w.stop(p)
        self.workers = []

    def run(self, *argv, **more):
        self.workers.append(self.w.start(*argv, **more))

    def text(self):
        return f"{time.monotonic_ns()} {PAD}"


class RedisList(Peer):
    """Producers of a plain list."""

    def fill(self, n):
        self.w.redis.lpush("q", *[f"0 {PAD}"] * n)

    def push(self):
        text = self.text().encode()
        self.w.link.sendall(b"*3\r\n$5\r\nLPUSH\r\n$1\r\nq\r\n$%d\r\n%s\r\n" % (len(text), text))
        self.w.link.recv(64)


class Rqd(RedisList):
    name = "rqd"
    exec_count = 3000
    noop_count = 200000

    def fill_noop(self, n):
        """The others' ids come with their envelopes: so here is one, too."""
        for i in range(0, n, 1000):
            self.w.redis.lpush("q", *[json.dumps({"id": f"order-{k:019d}", "text": f"0 {PAD}"})
                                      for k in range(i, i + 1000)])

    def work(self, noop=False):
        path = os.path.join(self.w.dir, "rqd.conf")
        user = 'defaults { user = "root" }\n' if os.geteuid() == 0 else ""
        run = f'command = {{"{self.w.stamp}", "{self.w.stamps}"}} concurrency = {AT_ONCE}'
        fed = (f'command = {{"{self.w.build}/bench/answer", "each"}} mode = "persistent" '
               f'concurrency = {AT_ONCE} pipeline = 64')
        with open(path, "w", encoding="ascii") as f:
            f.write(f'redis {{ server = "unix:{self.w.socket}" }}\n{user}'
                    f'log {{ target = "{self.w.dir}/rqd.log" level = "warn" }}\n'
                    f'queue "q" {{ {fed if noop else run} }}\n')
        self.run(os.path.join(self.w.build, "rqd"), "-c", path)

    def waiting(self):
        return self.w.redis.llen("q") + self.w.redis.zcard("qBACKUP")


class ShellLoop(RedisList):
    name = "redis-cli shell loop"
    exec_count = 150
    LOOP = ('while m=$(redis-cli -p "$BENCH_PORT" --raw brpop q 0 | tail -n +2); do '
            'printf %s "$m" | "$BENCH_STAMP" "$BENCH_STAMPS"; done')

    def work(self, noop=False):
        for _ in range(AT_ONCE):
            self.run("/bin/sh", "-c", self.LOOP)


class Gearman(Peer):
    name = "gearman -w"
    exec_count = 3000

    def open(self):
        self.port = free_port()
        self.server = self.w.start("gearmand", "--listen=127.0.0.1", f"--port={self.port}",
                                   "--log-file=stderr")
        wait_for("gearmand", lambda: answers(self.port))
        self.link = connect(self.port)

    def submit(self, text):
        data = b"q\0" + secrets.token_hex(8).encode() + b"\0" + text.encode()
        return b"\0REQ" + struct.pack(">II", 18, len(data)) + data

    def take_answers(self, n):
        """JOB_CREATED, one for each."""
        while n > 0:
            head = self.link.recv(12, socket.MSG_WAITALL)
            self.link.recv(struct.unpack(">I", head[8:12])[0], socket.MSG_WAITALL)
            n -= 1

    def fill(self, n):
        for at in range(0, n, 100):
            m = min(100, n - at)
            self.link.sendall(b"".join(self.submit(f"0 {PAD}") for _ in range(m)))
            self.take_answers(m)

    def push(self):
        self.link.sendall(self.submit(self.text()))
        self.take_answers(1)

    def work(self, noop=False):
        for _ in range(AT_ONCE):
            self.run("gearman", "-h", "127.0.0.1", "-p", str(self.port), "-w", "-f", "q", "--",
                     self.w.stamp, self.w.stamps)

    def clear(self):
        pass


class Amqp(Peer):
    name = "amqp-consume"
    exec_count = 3000

    def open(self):
        self.port, dist = free_port(), free_port()
        home = os.path.join(self.w.dir, "rabbit")
        os.mkdir(home)
        with open(os.path.join(home, "enabled_plugins"), "w", encoding="ascii") as f:
            f.write("[].\n")
        self.env = {"HOME": home, "RABBITMQ_NODENAME": f"bench{self.port}@localhost",
                    "RABBITMQ_NODE_PORT": str(self.port), "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
                    "RABBITMQ_DIST_PORT": str(dist), "RABBITMQ_MNESIA_BASE": home,
                    "RABBITMQ_LOG_BASE": home, "ERL_EPMD_PORT": str(free_port()),
                    "RABBITMQ_ENABLED_PLUGINS_FILE": os.path.join(home, "enabled_plugins"),
                    "RABBITMQ_CONFIG_FILE": os.path.join(home, "none")}
        self.server = self.w.start("/usr/lib/rabbitmq/bin/rabbitmq-server", env=self.env)
        import amqp

        def there():
            try:
                self.link = amqp.Connection(f"127.0.0.1:{self.port}", userid="guest",
                                            password="guest")
                self.link.connect()
                return True
            except (OSError, amqp.exceptions.AMQPError):
                return False
        wait_for("rabbitmq-server", there, 60)
        self.amqp = amqp
        self.channel = self.link.channel()
        self.channel.queue_declare("q", durable=False, auto_delete=False)

    def close(self):
        super().close()
        self.w.stop(self.server)
        subprocess.run(["epmd", "-kill"], env=dict(os.environ, **self.env), check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def publish(self, text):
        self.channel.basic_publish(self.amqp.Message(text, delivery_mode=1), routing_key="q")

    def fill(self, n):
        for _ in range(n):
            self.publish(f"0 {PAD}")
        self.channel.queue_declare("q", passive=True)

    def frame(self, kind, body):
        return struct.pack(">BHI", kind, self.channel.channel_id, len(body)) + body + b"\xce"

    def push(self):
        """Basic.Publish of a transient message to the queue q, its header, its body."""
        text = self.text().encode()
        self.link.transport.sock.sendall(
            self.frame(1, b"\0\x3c\0\x28\0\0" + b"\0" + b"\x01q" + b"\0") +
            self.frame(2, b"\0\x3c\0\0" + struct.pack(">QHB", len(text), 0x1000, 1)) +
            self.frame(3, text))

    def work(self, noop=False):
        for _ in range(AT_ONCE):
            self.run("amqp-consume", f"--url=amqp://127.0.0.1:{self.port}", "-q", "q", "-p", "1",
                     self.w.stamp, self.w.stamps)

    def clear(self):
        self.channel.queue_purge("q")


class Beanstalk(Peer):
    name = "beanstalkd, ruby"
    noop_count = 20000

    def open(self):
        self.port = free_port()
        self.server = self.w.start("beanstalkd", "-l", "127.0.0.1", "-p", str(self.port))
        wait_for("beanstalkd", lambda: answers(self.port))
        self.link = socket.create_connection(("127.0.0.1", self.port))
        self.file = self.link.makefile("rb")
        self.command(b"use q")

    def command(self, line):
        self.link.sendall(line + b"\r\n")
        return self.file.readline()

    def put(self, text):
        return b"put 0 0 60 %d\r\n%s\r\n" % (len(text), text.encode())

    def fill(self, n):
        for at in range(0, n, 100):
            m = min(100, n - at)
            self.link.sendall(self.put(f"0 {PAD}") * m)
            for _ in range(m):
                self.file.readline()

    def push(self):
        self.link.sendall(self.put(self.text()))
        self.file.readline()

    def work(self, noop=False):
        for _ in range(AT_ONCE):
            self.run("ruby", os.path.join(here, "peer_beanstalk.rb"), "q",
                     "noop" if noop else "run", env={"BENCH_BEANSTALK": str(self.port)})

    def waiting(self):
        size = int(self.command(b"stats-tube q").split()[1])
        stats = self.file.read(size + 2).decode()
        return sum(int(line.split()[1]) for line in stats.splitlines()
                   if line.startswith(("current-jobs-ready", "current-jobs-reserved")))

    def clear(self):
        pass


class Celery(Peer):
    name = "Celery"
    exec_count = 700
    noop_count = 1500

    def open(self):
        os.environ.update(self.w.env)
        sys.path.insert(0, here)
        import peer_celery
        self.tasks = peer_celery
        self.task = "run"

    def fill(self, n):
        task = getattr(self.tasks, self.task)
        with self.tasks.app.producer_pool.acquire(block=True) as producer:
            for _ in range(n):
                task.apply_async((f"0 {PAD}",), producer=producer)

    def push(self):
        self.tasks.run.apply_async((self.text(),))

    def work(self, noop=False):
        self.run(PYTHON, "-m", "celery", "-A", "peer_celery", "worker", "-c", str(AT_ONCE), "-l",
                 "warning", "--without-gossip", "--without-mingle")

    def waiting(self):
        return self.w.redis.llen("celery") + self.w.redis.hlen("unacked")


class Rq(Peer):
    name = "RQ"
    exec_count = 100
    noop_count = 120
    pushes = 12

    def open(self):
        import rq
        sys.path.insert(0, here)
        import peer_rq
        self.tasks = peer_rq
        self.queue = rq.Queue("q", connection=self.w.redis)
        self.task = "run"

    def enqueue(self, text):
        self.queue.enqueue(getattr(self.tasks, self.task), text, result_ttl=0)

    def fill(self, n):
        for _ in range(n):
            self.enqueue(f"0 {PAD}")

    def push(self):
        self.enqueue(self.text())

    def work(self, noop=False):
        for _ in range(AT_ONCE):
            self.run(PYTHON, "/usr/bin/rq", "worker", "-q", "-u", self.w.env["BENCH_REDIS"], "q")

    def waiting(self):
        return self.w.redis.llen("rq:queue:q") + self.w.redis.zcard("rq:wip:q")


class Sidekiq(Peer):
    name = "Sidekiq"
    exec_count = 400
    noop_count = 5000

    def open(self):
        self.task = "run"

    def job(self, text):
        at = time.time()
        name = "PeerRun" if self.task == "run" else "PeerNoop"
        return json.dumps({"class": name, "args": [text], "jid": secrets.token_hex(12),
                           "queue": "default", "retry": True, "created_at": at,
                           "enqueued_at": at})

    def fill(self, n):
        self.w.redis.sadd("queues", "default")
        self.w.redis.lpush("queue:default", *[self.job(f"0 {PAD}") for _ in range(n)])

    def push(self):
        self.w.redis.lpush("queue:default", self.job(self.text()))

    def work(self, noop=False):
        self.run("sidekiq", "-c", str(AT_ONCE), "-r", os.path.join(here, "peer_sidekiq.rb"))

    def waiting(self):
        return self.w.redis.llen("queue:default")


class BullMq(Peer):
    name = "BullMQ"
    exec_count = 500
    noop_count = 10000
    modules = ""

    def open(self):
        if not os.path.isdir(os.path.join(self.modules, "bullmq")):
            raise RuntimeError("bullmq is not installed")
        self.script = os.path.join(here, "peer_bullmq.js")
        self.producer = self.w.start("node", self.script, "producer", stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, env={"NODE_PATH": self.modules})

    def tell(self, line):
        self.producer.stdin.write(line.encode() + b"\n")
        self.producer.stdin.flush()
        self.producer.stdout.readline()

    def fill(self, n):
        self.tell(f"fill {n} 0{PAD}")

    def push(self):
        self.tell(f"one {PAD}")

    def work(self, noop=False):
        self.run("node", self.script, "worker", "noop" if noop else "run",
                 env={"NODE_PATH": self.modules})

    def waiting(self):
        return (self.w.redis.llen("bull:bench:wait") + self.w.redis.llen("bull:bench:active"))


PEERS = [Rqd, Gearman, Amqp, ShellLoop, Beanstalk, Celery, Sidekiq, BullMq, Rq]


def begin(peer, task):
    peer.clear()
    peer.task = task
    if os.path.exists(peer.w.stamps):
        os.unlink(peer.w.stamps)


def measure_exec(peer):
    """Messages a second between the first and the last handler's first instruction."""
    begin(peer, "run")
    peer.fill(peer.exec_count)
    peer.work()
    wait_for(f"{peer.name}: {peer.exec_count} messages",
             lambda: peer.w.stamped() >= peer.exec_count, 60)
    peer.stop()
    at = sorted(t for _, t in peer.w.read_stamps())
    return (len(at) - 1) / (at[-1] - at[0]) * 1e9


def measure_latency(peer):
    """All latencies, in µs, of messages that come one at a time."""
    begin(peer, "run")
    peer.work()
    for i in range(4):
        peer.push()
        wait_for(f"{peer.name}: its first message", lambda n=i: peer.w.stamped() > n)
    time.sleep(0.2)
    warm = peer.w.stamped()
    for _ in range(peer.pushes):
        peer.push()
        time.sleep(random.uniform(0.5, 1.5) / peer.pushes)
    wait_for(f"{peer.name}: the last message",
             lambda: peer.w.stamped() >= warm + peer.pushes)
    peer.stop()
    return [latency for latency, _ in peer.w.read_stamps()[warm:]]


def measure_noop(peer):
    """Messages a second from the first that was taken to the last."""
    begin(peer, "noop")
    peer.fill_noop(peer.noop_count)
    total = peer.waiting()
    peer.work(noop=True)
    wait_for(f"{peer.name}: a worker", lambda: peer.waiting() < total)
    since, left = time.monotonic(), peer.waiting()
    wait_for(f"{peer.name}: the end", lambda: peer.waiting() == 0, 60)
    took = time.monotonic() - since
    peer.stop()
    return left / took


def open_peers(world, names):
    peers = []
    for kind in PEERS:
        if names and not any(n.lower() in kind.name.lower() for n in names):
            continue
        try:
            peer = kind(world)
            peer.open()
            peer.exec_rates, peer.noop_rates, peer.latencies, peer.p50s = [], [], [], []
            peers.append(peer)
        except (RuntimeError, OSError, ImportError) as e:
            print(f"{kind.name}: not measured: {e}", flush=True)
    return peers


def attempt(peer, what, measure):
    try:
        return measure(peer)
    except (RuntimeError, OSError) as e:
        print(f"{peer.name}: {what}: {e}", flush=True)
        peer.stop()
        return None


def run_round(peers):
    for peer in peers:
        rate = attempt(peer, "exec", measure_exec)
        if rate is not None:
            peer.exec_rates.append(rate)
        delays = attempt(peer, "latency", measure_latency)
        if delays is not None:
            peer.latencies += delays
            peer.p50s.append(statistics.median(delays))
        if peer.noop_count:
            rate = attempt(peer, "no-op", measure_noop)
            if rate is not None:
                peer.noop_rates.append(rate)


def ratio(ours, theirs):
    """The median of the rounds' own ratios."""
    pairs = [a / b for a, b in zip(ours, theirs)]
    return f"{statistics.median(pairs):.2f}" if pairs else ""


def p99(values):
    return sorted(values)[int(len(values) * 0.99)]


def tables(peers):
    us = next((p for p in peers if isinstance(p, Rqd)), peers[0])
    yield "A program per message, eight at once; latency from the enqueueing to its first "
    yield "instruction, one message at a time.\n\n"
    yield "| | messages/s | rqd is faster by | p50 µs | rqd's part of it | p99 µs |\n"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |\n"
    for p in sorted(peers, key=lambda p: -statistics.median(p.exec_rates or [0])):
        if p.exec_rates and p.latencies:
            yield (f"| {p.name} | {statistics.median(p.exec_rates):.0f} "
                   f"| {ratio(us.exec_rates, p.exec_rates)} | {statistics.median(p.latencies):.0f} "
                   f"| {ratio(us.p50s, p.p50s)} | {p99(p.latencies):.0f} |\n")
    yield "\nA job that does nothing, in the worker, eight at once; rqd: persistent handlers in C, `pipeline = 64`.\n\n"
    yield "| | messages/s | rqd is faster by |\n| --- | ---: | ---: |\n"
    for p in sorted(peers, key=lambda p: -statistics.median(p.noop_rates or [0])):
        if p.noop_rates:
            yield (f"| {p.name} | {statistics.median(p.noop_rates):.0f} "
                   f"| {ratio(us.noop_rates, p.noop_rates)} |\n")


PACKAGES = ["redis-server", "gearman-job-server", "rabbitmq-server", "amqp-tools", "beanstalkd",
            "python3-celery", "python3-rq", "ruby-sidekiq", "ruby-beaneater", "libhiredis0.14"]


def versions(modules):
    """What was compared, on what."""
    found = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${Version}, "] + PACKAGES,
                           check=False, capture_output=True, text=True).stdout
    try:
        with open(os.path.join(modules, "bullmq", "package.json"), encoding="utf-8") as f:
            found += f"bullmq {json.load(f)['version']}, "
    except OSError:
        pass
    node = subprocess.run(["node", "--version"], check=False, capture_output=True, text=True)
    return (f"{time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC, {os.cpu_count()} processors, "
            f"Linux {os.uname().release}; {found}node {node.stdout.strip()}.\n")


def main():
    args = argparse.ArgumentParser()
    args.add_argument("-r", "--rounds", type=int, default=3)
    args.add_argument("-o", "--report")
    args.add_argument("--modules", default="")
    args.add_argument("build")
    args.add_argument("peers", nargs="*")
    a = args.parse_args()
    BullMq.modules = a.modules
    since, load = time.monotonic(), os.getloadavg()[0]
    world = World(os.path.abspath(a.build))
    peers = []
    try:
        peers = open_peers(world, a.peers)
        for _ in range(a.rounds):
            run_round(peers)
        text = "".join(tables(peers))
        text += (f"\n{a.rounds} rounds, {time.monotonic() - since:.0f} s, load average before: "
                 f"{load:.1f}; {versions(a.modules)}")
        print(text)
        if a.report:
            with open(a.report, "w", encoding="utf-8") as f:
                f.write(text)
    finally:
        for p in peers:
            p.close()
        world.close()


if __name__ == "__main__":
    main()

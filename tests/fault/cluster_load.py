# Producers for the tests of a Redis Cluster: python3 cluster_load.py FILE HOST:PORT...
#
# Each line on standard input is "LABEL KIND KEY"; to each such key one message goes in a
# turn.  A message whose push a replica has confirmed, too, is a line of FILE: "LABEL ID
# SENT CONFIRMED", times in seconds since the machine started, as in /proc/uptime.
# The rest may be lost or not.  It ends when FILE.stop exists.
import os, socket, sys, threading, time

TURN = 0.12     # seconds between two messages of a label
WAIT = "500"    # ms that a replica has to confirm
out, nodes = sys.argv[1], [n.rsplit(":", 1) for n in sys.argv[2:]]
file = open(out, "a", buffering=1)

def clock(): return time.clock_gettime(time.CLOCK_BOOTTIME)

class Refused(Exception):
    pass

class Connection:
    def __init__(self, node):
        self.sock = socket.create_connection((node[0], int(node[1])), timeout=0.3)
        self.sock.settimeout(1.5)
        self.read = self.sock.makefile("rb")

    def reply(self):
        line = self.read.readline()
        if not line.endswith(b"\r\n"):
            raise OSError("closed")
        kind, rest = line[:1], line[1:-2].decode()
        if kind == b"$":
            return self.read.read(int(rest) + 2)[:-2].decode()
        if kind == b"-":
            raise Refused(rest)
        return rest

    def ask(self, *commands):   # the replies; an error stands in the list
        self.sock.sendall(b"".join(b"*%d\r\n" % len(c) + b"".join(
            b"$%d\r\n%s\r\n" % (len(w.encode()), w.encode()) for w in c) for c in commands))
        replies = []
        for _ in commands:
            try:
                replies.append(self.reply())
            except Refused as refusal:
                replies.append(refusal)
        return replies

def push_of(kind, key, id):
    message = '{"id":"%s"}' % id
    return {
        "ack": ("LPUSH", key, message), "list": ("LPUSH", key, message),
        "unique": ("ZADD", key, "0", id), "stream": ("XADD", key, "*", "message", message),
        "expired": ("SET", key + ":" + id, "x", "PX", "150"), "channel": ("PUBLISH", key, id),
    }[kind]

def other(node):
    return nodes[(nodes.index(node) + 1) % len(nodes)] if node in nodes else nodes[0]

def turn(state, kind, key, id):     # the reply to the push; None: not confirmed
    if state["conn"] is None:
        state["conn"] = Connection(state["node"])
    pushed, copies = state["conn"].ask(push_of(kind, key, id), ("WAIT", "1", WAIT))
    if isinstance(pushed, Refused):
        word, *to = str(pushed).split()
        if word in ("MOVED", "ASK"):
            to = to[1].rsplit(":", 1)
        if word == "ASK":
            asked = Connection(to)
            _, pushed, copies = asked.ask(("ASKING",), push_of(kind, key, id), ("WAIT", "1", WAIT))
            asked.sock.close()
        if isinstance(pushed, Refused):
            raise OSError(word, to if word == "MOVED" else None)
    return pushed if not isinstance(copies, Refused) and int(copies) > 0 else None

def produce(label, kind, key):
    state, n = {"node": nodes[0], "conn": None}, 0
    while not os.path.exists(out + ".stop"):
        n += 1
        id, sent = "%s-%d" % (label, n), clock()
        try:
            pushed = turn(state, kind, key, id)
            if pushed is not None and kind == "stream":
                id = pushed
            if pushed is not None:
                file.write("%s %s %.2f %.2f\n" % (label, id, sent, clock()))
            time.sleep(max(0, TURN - (clock() - sent)))
        except OSError as error:    # a refusal, or a connection that is gone
            moved = error.args[1] if error.args and error.args[0] == "MOVED" else None
            if state["conn"] is not None:
                state["conn"].sock.close()
            state["conn"], state["node"] = None, moved or other(state["node"])
            time.sleep(0.02)

threads = [threading.Thread(target=produce, args=line.split()) for line in sys.stdin]
for t in threads: t.start()
for t in threads: t.join()

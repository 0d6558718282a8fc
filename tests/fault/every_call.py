#!/usr/bin/env python3
"""
One fault at each call that rqd makes to Redis, one after the other.

	every_call.py PROXY-SOCKET REDIS-SOCKET RUNS STEP KIND

This is a proxy between rqd and Redis that understands requests.  For each fault and each
n, it pushes messages, lets the n-th script call from then on meet the fault, and waits
until nothing of them is left in the queue, which is called as its kind.  It prints a line
of TAP for each kind and fault.  RUNS is the file to which the handler appends the name of
each message that it runs; a message with "r" in its name fails once.  STEP: only each
STEP-th n.

Which script a call runs does not matter here: this test knows no script's name, and
holds for any set of scripts.
"""
import asyncio
import collections
import sys

PROXY, REDIS, RUNS, STEP, KIND = sys.argv[1:]
PATIENCE = 25			# seconds: less than the lease, which may not be what helps

# What happens to the call.  An answer that begins with "-" is given in place of Redis',
# which does not see the call; with "+-" Redis runs the call first.
FAULTS = {
    'request lost': 'lose request',
    'reply lost': 'lose reply',
    'NOSCRIPT': '-NOSCRIPT No matching script. Please use EVAL.',
    'BUSY': '-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.',
    'LOADING': '-LOADING Redis is loading the dataset in memory',
    'OOM': "-OOM command not allowed when used memory > 'maxmemory'.",
    'READONLY': "-READONLY You can't write against a read only replica.",
    'MISCONF': '-MISCONF Redis is configured to save RDB snapshots, but it is currently unable to persist to disk.',
    'NOREPLICAS': '-NOREPLICAS Not enough good replicas to write.',
    'TRYAGAIN': '-TRYAGAIN Multiple keys request during rehashing of slot',
    'CLUSTERDOWN': '-CLUSTERDOWN The cluster is down',
    'NOPERM': "-NOPERM this user has no permissions to run the 'evalsha' command",
    'an error after its work': '+-ERR user_script:1: made by a test script: c2fab, on @user_script:1.',
    'NOPERM after its work': '+-NOPERM this user has no permissions to run the \'ltrim\' command script: c2fab, on @user_script:1.',
    'reply late': 'late',
}
LATE = 3			# seconds; redis.timeout is 2


class Plan:
    """The next fault: `left` script calls until it happens; 0: none is planned."""
    left = 0
    what = ''
    done = False


async def read_value(reader):
    """One RESP value, as (its bytes, its words: None for anything but an array)."""
    line = await reader.readuntil(b'\r\n')
    kind, rest = line[:1], line[1:-2]
    if kind == b'$':
        if int(rest) < 0:
            return line, None
        body = await reader.readexactly(int(rest) + 2)
        return line + body, body[:-2]
    if kind == b'*':
        raw, words = line, []
        for _ in range(max(int(rest), 0)):
            part, word = await read_value(reader)
            raw += part
            words.append(word)
        return raw, words
    return line, rest


class Connection:
    def __init__(self, down_reader, down_writer):
        self.down = down_reader, down_writer
        self.waiting = collections.deque()	# what to do with each reply to come

    async def serve(self):
        try:
            self.up = await asyncio.open_unix_connection(REDIS, limit=1 << 26)
            tasks = [asyncio.create_task(self.requests()), asyncio.create_task(self.replies())]
            _, others = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for t in others:
                t.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.up[1].close()
        except OSError:
            pass
        self.down[1].close()

    async def requests(self):
        while True:
            raw, words = await read_value(self.down[0])
            fate = self.fate(words)
            if fate == 'lose request':
                return
            self.waiting.append(fate)
            if fate.startswith('-'):	# answered here, in its turn
                raw = b'*1\r\n$4\r\nPING\r\n'
            self.up[1].write(raw)

    def fate(self, words):
        if words[0].upper() not in (b'EVALSHA', b'EVAL'):
            return ''
        if Plan.left == 0:
            return ''
        Plan.left -= 1
        if Plan.left > 0:
            return ''
        Plan.done = True
        return Plan.what

    async def replies(self):
        while True:
            raw, words = await read_value(self.up[0])
            is_message = isinstance(words, list) and words[:1] == [b'message']
            fate = '' if is_message or not self.waiting else self.waiting.popleft()
            if fate == 'lose reply':
                return
            if fate == 'late':
                await asyncio.sleep(LATE)
            if fate.lstrip('+').startswith('-'):
                raw = fate.lstrip('+').encode() + b'\r\n'
            self.down[1].write(raw)


class Client:
    async def open(self):
        self.reader, self.writer = await asyncio.open_unix_connection(REDIS, limit=1 << 26)
        return self

    async def ask(self, *words):
        words = [w.encode() for w in words]
        self.writer.write(b'*%d\r\n' % len(words) + b''.join(b'$%d\r\n%s\r\n' % (len(w), w) for w in words))
        return (await read_value(self.reader))[1]


def runs(ids):
    with open(RUNS) as f:
        lines = f.read().split('\n')
    return {i: lines.count(i) for i in ids}


async def push(redis, kind, names):
    for name in names:
        if kind == 'ack':
            await redis.ask('LPUSH', kind, '{"id":"%s"}' % name)
        elif kind == 'unique':
            await redis.ask('ZADD', kind, '0', name)
        else:
            await redis.ask('XADD', kind, '*', 'message', name)


async def is_done(redis, kind):
    for suffix in ('BACKUP', 'RETRY', 'CONTEXT') + (('',) if kind != 'stream' else ()):
        if await redis.ask('EXISTS', kind + suffix) != b'0':
            return False
    return kind != 'stream' or (await redis.ask('XPENDING', kind, 'rqd'))[0] == b'0'


async def one(redis, kind, fault, n, number):
    """One fault at the n-th call; what went wrong, or None.  False: there is no n-th call."""
    names = ['%d.%d' % (number, i) for i in range(4)] + ['%d.r' % number]
    Plan.what, Plan.left, Plan.done = FAULTS[fault], n, False
    await push(redis, kind, names)
    end = asyncio.get_running_loop().time() + PATIENCE
    while True:
        got = runs(names)
        if all(got.values()) and await is_done(redis, kind):
            got = runs(names)		# one may have run between the two looks
            break
        if asyncio.get_running_loop().time() > end:
            Plan.left = 0
            return '%s at call %d: not done after %d s; it ran %s' % (fault, n, PATIENCE, got)
        await asyncio.sleep(0.01)
    reached, Plan.left = Plan.done, 0
    if await redis.ask('EXISTS', kind + 'DEAD') != b'0':
        await redis.ask('DEL', kind + 'DEAD')
        return '%s at call %d: there is a dead letter' % (fault, n)
    wrong = {i: c for i, c in got.items() if c != (2 if i.endswith('r') else 1)}
    if wrong:
        return '%s at call %d: it ran %s' % (fault, n, wrong)
    return None if reached else False


async def each_call(redis, kind, fault, number):
    """The fault at each call; how many, and what went wrong."""
    n, bad = 1, []
    while True:
        wrong = await one(redis, kind, fault, n, number + n)
        if wrong is False:
            return n - 1, bad
        if wrong:
            bad.append(wrong)
        n += int(STEP)


async def main():
    server = await asyncio.start_unix_server(
        lambda r, w: Connection(r, w).serve(), PROXY, limit=1 << 26)
    await asyncio.to_thread(sys.stdin.readline)		# until rqd is ready
    redis = await Client().open()
    number = 0
    for fault in FAULTS:
        calls, bad = await each_call(redis, KIND, fault, number)
        number += 1000
        print('%sok - %s, %s at each of %d calls: every message runs once and is acked' %
              ('not ' if bad else '', KIND, fault, calls), flush=True)
        for b in bad[:10]:
            print('# ' + b, flush=True)
    server.close()

asyncio.run(main())

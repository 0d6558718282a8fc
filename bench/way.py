#!/usr/bin/env python3
"""Counts the calls that one message costs.

    bench/way.py BUILD        BUILD/rqd is built with -finstrument-functions

Starts a Redis and an rqd with one idle queue of kind ack, mode exec, /bin/sh,
concurrency 1; pushes one message at a time and prints the medians of 50:

    way_calls            calls of rqd's own functions in the main process
    way_defers           calls of loop_defer() among them
    way_queue_turns      calls of leased_turn() among them
    way_spawner_calls    calls in the spawner; those of its child are left out

With WAY_LIST=N also the N functions called most, with their medians.
"""

import collections
import mmap
import os
import pwd
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

MESSAGES = 50
WARM_UP = 10
PROCESSES, FUNCTIONS = 512, 4096        # as in way.c
QUIET = 0.15                            # no call for so long: the message is over


def wait_for(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            sys.exit('bench/way.py: nothing happened for %d s' % seconds)
        time.sleep(0.005)


class Counts:
    """The file that way.c writes."""

    SIZE = 8 + 16 * FUNCTIONS

    def __init__(self, path):
        with open(path, 'r+b') as f:
            self.map = mmap.mmap(f.fileno(), 0)

    def read(self):
        """{pid: {address: calls}}"""
        found = {}
        for i in range(PROCESSES):
            at = i * self.SIZE
            pid, = struct.unpack_from('Q', self.map, at)
            if pid == 0:
                break
            words = struct.unpack_from('%dQ' % (2 * FUNCTIONS), self.map, at + 8)
            found[pid] = {a: n for a, n in zip(words[::2], words[1::2]) if a}
        return found

    def when_quiet(self):
        seen = self.read()
        while True:
            time.sleep(QUIET)
            now = self.read()
            if now == seen:
                return now
            seen = now


def names_of(program):
    """{address: name} of the functions of a program."""
    lines = subprocess.check_output(['nm', program], text=True).splitlines()
    words = [line.split() for line in lines]
    return {int(w[0], 16): w[2] for w in words if len(w) == 3 and w[1] in 'tT'}


def run(build, folder):
    socket = os.path.join(folder, 'redis')
    # rqd trusts no configuration beside what others may write.
    out = os.path.join(folder, 'out')
    os.mkdir(out)
    os.chmod(out, 0o777)
    log = os.path.join(out, 'log')
    counts_file = os.path.join(out, 'counts')
    with open(os.path.join(folder, 'conf'), 'w') as f:
        f.write('redis { server = "unix:%s" }\n'
                'log { target = "%s" }\n'
                'queue "q" { command = {"/bin/sh", "-c", "exit 0"} concurrency = 1'
                ' user = "%s" }\n' % (socket, log, pwd.getpwuid(os.getuid()).pw_name))
    redis = subprocess.Popen(['redis-server', '--port', '0', '--unixsocket', socket,
                              '--save', '', '--dir', folder], stdout=subprocess.DEVNULL)
    rqd = None
    try:
        wait_for(lambda: os.path.exists(socket))
        os.chmod(socket, 0o777)
        rqd = subprocess.Popen(
            [os.path.join(build, 'rqd'), '-c', os.path.join(folder, 'conf')],
            env=dict(os.environ, WAY_FILE=counts_file,
                     LD_PRELOAD=os.path.join(folder, 'way.so')))
        wait_for(lambda: os.path.exists(log) and 'event=redis_up' in open(log).read())
        return measure(rqd.pid, socket, log, Counts(counts_file))
    finally:
        for process in (rqd, redis):
            if process is not None:
                process.terminate()
                process.wait()


def measure(main, socket, log, counts):
    runs = []
    before = at_start = counts.when_quiet()
    for i in range(WARM_UP + MESSAGES):
        acked = open(log).read().count('event=acked')
        subprocess.check_output(['redis-cli', '-s', socket, 'LPUSH', 'q',
                                 '{"id":"m%d"}' % i])
        wait_for(lambda: open(log).read().count('event=acked') > acked)
        after = counts.when_quiet()
        calls = collections.Counter()
        others = 0
        for pid, functions in after.items():
            for address, n in functions.items():
                n -= before.get(pid, {}).get(address, 0)
                if pid == main:
                    calls[address] += n
                elif pid in at_start:
                    others += n
        if i >= WARM_UP:
            runs.append((calls, others))
        before = after
    return runs


def report(runs, names):
    by_name = [collections.Counter() for _ in runs]
    for counted, (calls, _) in zip(by_name, runs):
        for address, n in calls.items():
            counted[names.get(address, '?')] += n

    def median(figures):
        return round(statistics.median(figures))

    print('way_calls', median(c.total() for c in by_name))
    print('way_defers', median(c['loop_defer'] for c in by_name))
    print('way_queue_turns', median(c['leased_turn'] for c in by_name))
    print('way_spawner_calls', median(others for _, others in runs))
    total = sum(by_name, collections.Counter())
    for name, _ in total.most_common(int(os.environ.get('WAY_LIST', 0))):
        print('   ', median(c[name] for c in by_name), name)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    build = os.path.abspath(sys.argv[1])
    here = os.path.dirname(os.path.abspath(__file__))
    folder = tempfile.mkdtemp(prefix='rqd-way.')
    try:
        os.chmod(folder, 0o755)
        subprocess.check_call(['gcc', '-D_GNU_SOURCE', '-O1', '-shared', '-fPIC', '-o',
                               os.path.join(folder, 'way.so'),
                               os.path.join(here, 'way.c')])
        report(run(build, folder), names_of(os.path.join(build, 'rqd')))
    finally:
        shutil.rmtree(folder)


main()

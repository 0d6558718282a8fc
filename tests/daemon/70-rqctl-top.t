#!/bin/sh
# rqctl status -w on a terminal that the test plays, and without one.

# shellcheck source=tests/lib.sh disable=SC2016,SC2034
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
command -v python3 >/dev/null || skip_all 'no python3'
redis_start

beat() { # INSTANCE JSON
	r set "rqd:daemon:$1" "$2" ex 3000 >/dev/null
	r zadd rqd:daemons "$(date +%s)" "$1" >/dev/null
}

# Names: control characters, wide and combining ones, right to left, 200 bytes, 300 queues.
python3 - >"$T/beat" <<'P'
import json
long = 'first.' + 'x' * 187 + '.second'
queues = {'q%d' % i: {'state': 'running', 'concurrency': 4, 'version': 1} for i in range(293)}
queues.update({
    long: {'state': 'suspended', 'reason': 'failing'},
    '日本語' * 22: {'state': 'paused'}, 'e\u0301e\u0301': {}, 'a\x1b[2Jb\rc\nd\u202ee': {},
    "it's a\ttab": {'state': 'running', 'concurrency': 1},
    'late': {'kind': 'unique'},
    'mail': {'state': 'suspended', 'reason': 'cannot_execute', 'cause': 'no such file', 'since': 1, 'running': 1, 'concurrency': 2},
})
print(json.dumps({'version': '0.1', 'queues': queues}))
P
beat h.9 "$(cat "$T/beat")"
r lpush q7 1 2 3 4 5 6 >/dev/null
r lpush q9 1 2 >/dev/null
r zadd late "$(($(date +%s) - 4000))" 1 >/dev/null
r eval 'for i = 1, 12 do redis.call("XADD", "mailDEAD", "*", "id", "id" .. i, "message", "m",
	"reason", i % 3 == 0 and "timeout" or "exit", "status", "1", "attempts", "25", "host", "web1",
	"error", "Traceback:\n  line " .. i .. "\n\27[31mValueError\n", "answer", "no such customer") end' 0 >/dev/null
r xadd q3DEAD '*' id 1 message m reason exit >/dev/null
# Without a message a suspended queue would be idle.
for q in mail "first.$(printf 'x%.0s' $(seq 187)).second"; do r zadd "${q}RETRY" 4e9 tag >/dev/null; done
r lpush "$(printf "it's a\ttab")" x >/dev/null

cat >"$T/test.py" <<'P'
import glob, json, os, re, signal, subprocess, sys, time
sys.path.insert(0, os.environ['SRCDIR'] + '/tests/helpers')
from terminal import Terminal
import termios

rqctl, server, slow, dir, redis_pid = sys.argv[1:6]

def redis(*words):
    return subprocess.run(['redis-cli', '-s', server[5:], *words], check=True,
                          capture_output=True, text=True).stdout

def top(*more, lines=24, width=80, interval='100ms', **env):
    env = {'TERM': 'xterm', **env}
    return Terminal([rqctl, '--server', server, 'status', '-w', '--interval', interval, *more],
                    lines, width, int(slow), **env)

def rows(t):
    """The lines of the queues."""
    at = next(y for y in range(t.lines) if t.line(y).startswith('QUEUE'))
    return [t.line(y) for y in range(at + 1, t.lines - 1)]

def first(n):
    return r'^queues %d to ' % n

def quit(t):
    t.send('q')
    assert t.end() == 0, t.status
    assert t.misdrawn == 0, t.misdrawn
    assert not t.modes & {'1049'} and {'25', '7'} <= t.modes, t.modes

def fits():
    t = top()
    t.wait(r'^queues 1 to 20 of 300; arrows scroll, q quits$')
    assert re.match('redis unix:.*, 1 daemon, 20[0-9T:-]+Z$', t.line(0)), t.line(0)
    assert re.match(r'QUEUE +WAIT +RUN +RETRY +DELAY +DEAD +LATENCY +STATE$', t.line(2)), t.line(2)
    assert re.match(r'error: mail: suspended: cannot_execute: no such file$', t.line(1)), t.line(1)
    assert all(len(line) <= 80 for line in t.screen().split('\n'))
    assert {'1049'} <= t.modes and not t.modes & {'25', '7'}
    quit(t)

def trouble_first():
    t = top()
    t.wait(first(1))
    names = [line.split()[0] for line in rows(t)]
    assert names[0].startswith('first.x') and names[1] == 'mail' and names[2].startswith('日本'), names
    assert names[3] == 'q3', names
    assert any(re.match(r'first\.x+\+x+\.second +0 .* suspended', row) for row in rows(t)[:2]), rows(t)
    quit(t)

def sizes():
    t = top(lines=10, width=40)
    t.wait(first(1))
    for lines, width, what in ((24, 132, r'DELAY +DEAD +LATENCY +OLDEST RUN +STATE\n(.*\n)*queues 1 to 20 of 300'),
                               (24, 80, r'^QUEUE +WAIT +RUN +RETRY +DELAY +DEAD +LATENCY +STATE$'),
                               (24, 50, r'^QUEUE +WAIT +DEAD +STATE$'), (6, 60, first(1)),
                               (5, 32, r'^fir\+cond +0  suspended'), (4, 80, r'^(mail|first)'),
                               (2, 30, r'^redis.*\nqueues'), (1, 10, r'^redis'), (24, 80, first(1))):
        t.resize(lines, width)
        t.wait(what)
    t.misdrawn = 0
    quit(t)

def plain_status():
    """rqctl status itself, on a terminal of 80 columns: STATE is there."""
    t = Terminal([rqctl, '--server', server, 'status'], 400, 80, int(slow), TERM='xterm')
    t.wait(r'^mail +.* suspended: can')
    t.wait(r'^first\.x+\+x+\.second .* suspended: fai')
    assert t.end() == 0 and not t.misdrawn, t.misdrawn

def scrolls():
    t = top()
    t.wait(first(1))
    top_row = rows(t)[1]
    for keys, at in (('\x1b[B', 2), ('\x1bOB', 3), ('\x1b[A', 2), ('\x1b[6~', 14), ('\x1b[C', 26), ('\x1b[D', 14),
                     ('\x1b[5~', 2), ('\x1b[A\x1b[A', 1), ('x\x1b[15~j', 1), ('\x1b[B', 2)):
        t.send(keys)
        t.wait(first(at))
    assert rows(t)[0] == top_row, (top_row, t.screen())
    t.send('\x1b[6~' * 40)
    t.wait(r'^queues 281 to 300 of 300')
    quit(t)

def redis_gone():
    t = top()
    t.wait(first(1))
    redis('client', 'kill', 'type', 'normal', 'skipme', 'yes')
    t.wait(first(1))
    os.rename(server[5:], server[5:] + '.away')
    redis2 = ['redis-cli', '-s', server[5:] + '.away']
    subprocess.run(redis2 + ['client', 'kill', 'type', 'normal', 'skipme', 'yes'], check=True, capture_output=True)
    t.wait(r'^redis unix:\S+: .*No such file')
    assert 'mail' in t.screen() and 'queues 1 to ' in t.screen(), t.screen()
    t.send('\x1b[B')
    t.wait(first(2))
    os.rename(server[5:] + '.away', server[5:])
    t.wait(lambda: 'No such file' not in t.screen() and 'queues 2 to' in t.screen())
    quit(t)

def ends():
    for how in '\x03', '\x1c', signal.SIGTERM, signal.SIGHUP, 'q':
        t = top(interval='1h')
        t.wait(first(1))
        during = t.attributes()
        assert not during[3] & (termios.ICANON | termios.ECHO) and during[3] & termios.ISIG, during
        t.send(how) if isinstance(how, str) else t.signal(how)
        assert t.end() == 0, (how, t.status)
        assert t.attributes() == t.before, repr(how)
        assert '1049' not in t.modes and {'25', '7'} <= t.modes, (how, t.modes)
        os.close(t.fd)
    t = top(interval='1h')
    t.wait(first(1))
    os.close(t.fd)                      # the window is closed
    until = time.monotonic() + 60 * int(slow)
    while os.waitpid(t.pid, os.WNOHANG) == (0, 0):
        assert time.monotonic() < until, 'it goes on without a terminal'
        time.sleep(0.02)

def hung():
    """Redis stands still: Control-C ends rqctl at once, not after redis.timeout."""
    pid = int(redis_pid)
    t = Terminal([rqctl, '-o', 'redis.timeout=10m', '--server', server, 'status', '-w', '--interval', '100ms'],
                 24, 80, int(slow), TERM='xterm')
    t.wait(first(1))
    os.kill(pid, signal.SIGSTOP)
    try:
        drawn = -1
        while drawn < len(t.raw):       # until it waits for Redis
            drawn = len(t.raw)
            t.pump(0.5)
        t.send('\x03')
        assert t.end() == 0, t.status
        assert t.attributes() == t.before
    finally:
        os.kill(pid, signal.SIGCONT)

def stops():
    """Control-Z in a shell, and fg."""
    t = Terminal(['bash', '--noediting', '--norc', '--noprofile', '-i'], 24, 80, int(slow), TERM='xterm', PS1='$ ')
    t.feed = lambda data: setattr(t, 'raw', t.raw + data)
    def until(what, start=0):
        t.wait(lambda: re.search(what, t.raw[start:]))
        return start + re.search(what, t.raw[start:]).end()
    until(rb'\$ ')
    t.send('stty -g >%s/before; echo read""y\n' % dir)
    at = until(rb'ready')
    t.send('%s --server %s status -w --interval 1h\n' % (rqctl, server))
    at = until(rb'queues 1 to', at)
    t.send('\x1a')
    at = until(rb'\x1b\[\?1049l', at)
    at = until(rb'Stopped', at)
    t.send('stty -g >%s/stopped; echo read""y\n' % dir)
    at = until(rb'ready', at)
    t.send('fg\n')
    at = until(rb'\x1b\[\?1049h', at)
    at = until(rb'queues 1 to', at)
    t.send('q')
    at = until(rb'\x1b\[\?1049l', at)
    t.send('stty -g >%s/after; exit 7\n' % dir)
    t.wait(lambda: os.path.exists(dir + '/after') and open(dir + '/after').read())
    assert t.end() == 7
    before, stopped, after = (open('%s/%s' % (dir, f)).read() for f in ('before', 'stopped', 'after'))
    assert before == stopped == after, (before, stopped, after)

def continued():
    """kill -STOP and -CONT, while the terminal was changed: it is taken over again."""
    t = top(interval='1h')
    t.wait(first(1))
    t.signal(signal.SIGSTOP)
    os.waitpid(t.pid, os.WUNTRACED)
    changed = t.attributes()
    raw = list(changed)
    raw[3] |= termios.ICANON | termios.ECHO
    termios.tcsetattr(t.fd, termios.TCSANOW, raw)
    t.raw = b''
    t.signal(signal.SIGCONT)
    t.wait(lambda: b'\x1b[?1049h' in t.raw and b'queues 1 to' in t.raw)
    assert t.attributes() == changed
    quit(t)

def colours():
    t = top(NO_COLOR='1')
    t.wait(first(1))
    quit(t)
    assert not re.search(rb'\x1b\[[0-9]*m', t.raw), 'colours'
    t = top(NO_COLOR='')
    t.wait(first(1))
    quit(t)
    assert re.search(rb'\x1b\[31m', t.raw), 'no colours'

def refused():
    """A first error leaves the terminal alone."""
    t = Terminal([rqctl, '--server', 'unix:%s/none' % dir, 'status', '-w'], 24, 80, int(slow), TERM='xterm')
    t.wait('^rqctl: redis unix:')
    assert t.end() == 69 and b'\x1b' not in t.raw, (t.status, t.raw)

def dumb():
    t = top('q7', 'q9', TERM='dumb')
    t.wait(lambda: t.raw.count(b'\r\nq9 ') >= 2 or t.raw.count(b'\r\n\r\n') >= 2)
    t.signal(signal.SIGTERM)
    assert t.end() == 0 and b'\x1b' not in t.raw, t.raw

def pipe():
    p = subprocess.Popen([rqctl, '--server', server, 'status', '-w', '--interval', '100ms', 'q7', 'mail'],
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    for _ in range(3):
        lines = [p.stdout.readline() for _ in range(6)]
        assert re.match(r'redis unix:.*, 1 daemon, 20\S+Z\n$', lines[0]), lines
        assert re.match(r'error: mail: suspended: ', lines.pop(1)), lines
        assert re.match(r'QUEUE +WAIT +RUN +RETRY +DELAY +DEAD +LATENCY +OLDEST RUN +STATE$', lines[1]), lines
        assert re.match(r'q7 +6 +0/4 ', lines[2]) and re.match(r'mail +0 ', lines[3]), lines
        assert lines[4] == '\n', lines
    p.send_signal(signal.SIGTERM)
    assert p.wait(60 * int(slow)) == 0
    p = subprocess.Popen([rqctl, '--server', server, 'status', '-w', '--interval', '100ms', 'q7'],
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    p.stdout.readline()
    p.stdout.close()
    assert p.wait(60 * int(slow)) == 0 and p.stderr.read() == '', p.returncode

for test in (fits, trouble_first, sizes, plain_status, scrolls, redis_gone, ends, hung, stops, continued,
             colours, refused, dumb, pipe):
    if len(sys.argv) > 6 and test.__name__ not in sys.argv[6:]:
        continue
    try:
        test()
        print(0, test.__name__)
    except Exception as e:
        print(1, test.__name__)
        for line in ('line %s: %s: %s' % ([f.lineno for f in __import__('traceback').extract_tb(e.__traceback__)], type(e).__name__, e)).split('\n'):
            print('#', line)
    sys.stdout.flush()
P
python3 "$T/test.py" "$RQCTL" "unix:$SOCK" "$SLOW" "$T" "$REDIS_PID" $TOP_TESTS >"$T/results" 2>"$T/errors"
is "$? $(cat "$T/errors")" '0 ' 'all was tried'
while read -r status words; do
	case $status in
	'#') note "$words" ;;
	*) report "$status" "$words" ;;
	esac
done <"$T/results"

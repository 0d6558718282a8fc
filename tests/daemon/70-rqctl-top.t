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
    'mail': {'state': 'suspended', 'reason': 'cannot_execute', 'since': 1, 'running': 1, 'concurrency': 2},
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
    """The table: name and the marked one's name."""
    at = next(y for y in range(t.lines) if t.line(y).startswith('  QUEUE'))
    return [t.line(y) for y in range(at + 1, t.lines - 1)]

def quit(t):
    t.send('q')
    assert t.end() == 0, t.status
    assert t.misdrawn == 0, t.misdrawn
    assert not t.modes & {'1049'} and {'25', '7'} <= t.modes, t.modes

def fits():
    t = top()
    t.wait(r'^1/300 by trouble')
    assert t.line(0).startswith('redis unix:') and ', 1 daemon, ' in t.line(0), t.line(0)
    assert re.match(r'300 queues, 2 bad, 1 warn; 10 waiting, 0 in flight, 13 dead$', t.line(1)), t.line(1)
    assert re.match(r'  QUEUE +WAIT +RUN +RETRY +DEAD +OK/S +FAIL/S +LATENCY +STATE$', t.line(2)), t.line(2)
    assert t.line(23).startswith('1/300 by trouble  q quit'), t.line(23)
    assert {'1049'} <= t.modes and not t.modes & {'25', '7'}
    assert t.raw.count(b'\x1b[H') >= 1 and b'\x1b[2J' not in t.raw
    quit(t)

def unnamed():
    redis('zadd', 'rqd:daemons:queues', '1', '{"key":"leftover","kind":"ack"}')
    redis('lpush', 'leftover', 'x')
    t = top()
    t.wait(r'^warning: no configuration names leftover, which holds messages: 1 waiting$')
    t.wait(r'^1/300 by trouble')
    quit(t)
    redis('del', 'rqd:daemons:queues', 'leftover')

def trouble_first():
    t = top()
    t.wait(r'^1/300')
    names = [line[2:].split()[0] for line in rows(t)]
    assert names[0].startswith('first.x') and names[1] == 'mail', names
    assert names[2].startswith('日本'), names
    assert names[3] == 'q3' and names[4] == 'q7' and names[5] == 'q9', names
    assert rows(t)[0].startswith('> ') and rows(t)[1].startswith('  '), rows(t)
    assert re.match(r'> first\.x+\+x+\.second +0 .* suspended', rows(t)[0]), rows(t)[0]
    quit(t)

def sizes():
    t = top(lines=10, width=40)
    t.wait(r'^1/300 by trouble')
    for lines, width, what in ((24, 132, r'DELAY.*\n(.*\n)*1/300 by trouble.* sort: '),
                               (6, 60, r'^1/300 by trouble'), (5, 24, r'^> fir'), (4, 80, r'^> first'),
                               (2, 30, r'^> fir'), (1, 10, r'^> f'), (24, 80, r'^1/300 by')):
        t.resize(lines, width)
        t.wait(what)
    t.misdrawn = 0
    quit(t)

def sorts():
    t = top()
    t.wait('^1/300')
    for key, by, first in (('n', 'name', r'> a\\x1b\[2Jb'), ('w', 'waiting', '> q7 '), ('d', 'dead', '> mail '), ('l', 'latency', '> late .* 1h'),
                           ('i', 'in flight', '> '), ('f', 'failures/s', '> '), ('t', 'trouble', '> first')):
        t.send(key)
        t.wait(r'^1/300 by %s  ' % by)
        assert re.match(first, rows(t)[0]), (key, rows(t)[0])
    t.send('nn')
    t.wait('^1/300 by name, reversed')
    assert rows(t)[0].startswith('> 日本語'), rows(t)[0]
    quit(t)

def moves():
    t = top()
    t.wait('^1/300')
    for keys, at in (('j', 2), ('\x1b[B', 3), ('\x1bOB', 4), ('\x1b[A', 3), ('k', 2), ('\x1b[F', 300), ('\x1b[B', 300),
                     ('\x1b[5~', 280), ('g', 1), ('\x1b[6~', 21), ('G', 300), ('\x1b[1~', 1), ('\x1b[A', 1)):
        t.send(keys)
        t.wait('^%d/300' % at)
        assert sum(line.startswith('> ') for line in rows(t)) == 1, t.screen()
    # In pieces, and a key that has no meaning.
    for piece in '\x1b', '[', 'B', '\x1b[15~', '\x1b[', '1;5', 'B':
        t.send(piece)
    t.wait('^2/300')
    quit(t)

def filters():
    t = top()
    t.wait('^1/300')
    t.send('/q2')
    t.wait(r'^/q2_  Enter')
    names = [line[2:].split()[0] for line in rows(t) if line[2:].strip()]
    assert len(names) == 20 and all('q2' in name for name in names), names
    t.send('9\x7f\x7f9')
    t.wait(r'^/q9_')
    t.send('\r')
    t.wait(r'^1/11 by trouble, /q9 ')
    t.send('\x1b')
    t.wait(r'^\d+/300 by trouble  ')
    t.send('/語\r')
    t.wait('^1/1 by trouble, /語')
    t.send('/\x15MAI\r')
    t.wait('^1/1 by trouble, /MAI')
    assert rows(t)[0].startswith('> mail')
    t.send('/\x15no such\r')
    t.wait("no queue's name contains the filter")
    t.send('\r')
    t.wait('^0/0')
    t.send('/\x1b')
    t.wait('^1/300')
    quit(t)

def opens():
    t = top(lines=40)
    t.wait('^1/300')
    t.send('j\r')
    t.wait('^mail: suspended: cannot_execute')
    for wanted in (r'^kind ack, key mail$', r'^Its command cannot be started\.', r'^waiting 0, running 0, retry 0, delayed 0, dead 12$',
                   r'^id12 died [0-9TZ:-]+ on web1: timeout, status 1, attempts 25$', r'^  it said: no such customer$',
                   r'^  Traceback:$', r'^    line 12$', r'^  \\x1b\[31mValueError$',
                   r'^ +8  exit  +20', r'^ +4  timeout  +20', r'^h\.9 +0\.1 +1/2 +suspended: cannot_execute$',
                   r'^  journalctl .*RQD_QUEUE=mail$', r'^  rqctl --server unix:\S+ probe mail$'):
        t.wait(wanted)
    # A new letter is seen.
    redis('xadd', 'mailDEAD', '*', 'id', 'new', 'message', 'm', 'reason', 'crashed', 'host', 'h')
    t.wait('^new died')
    t.wait(r'^ +1  crashed')
    redis('xtrim', 'mailDEAD', 'maxlen', '0')
    t.wait(lambda: 'Last error' not in t.screen())
    t.send('\x1b')
    t.wait(r'^2/300')
    # It is gone: back to the table.
    t.send('/mail\r\r')
    t.wait('^mail:')
    beat = json.loads(redis('get', 'rqd:daemon:h.9'))
    saved = beat['queues'].pop('mail')
    redis('set', 'rqd:daemon:h.9', json.dumps(beat))
    t.wait("no queue's name contains")
    beat['queues']['mail'] = saved
    redis('set', 'rqd:daemon:h.9', json.dumps(beat))
    t.wait('^> mail')
    quit(t)

def scrolls():
    t = top(lines=8, width=30)
    t.wait('^1/300 by')
    t.send('\r')
    t.wait('^Esc back')
    assert t.line(0).startswith('first.xxx'), t.screen()
    t.send('\x1b[F')
    t.wait(lambda: re.search('\\.second$', t.screen().rsplit('\n', 2)[0]) and 'first.' not in t.line(0))
    t.send('g')
    t.wait(lambda: t.line(0).startswith('first.'))
    for _ in range(5):
        t.send('j')
    t.wait(lambda: re.search('second: susp', t.line(1)))
    quit(t)

def commands():
    """What it says to type can be typed: a name with a quote and a tab, in a shell."""
    t = top(lines=50, width=200)
    t.wait('^1/300')
    t.send('/tab\r\r')
    t.wait('^Commands')
    t.wait(' pause ')
    lines = re.findall(r'^  (rqctl .*)$', t.screen(), re.M)
    assert len(lines) == 2, lines
    for line in lines:
        done = subprocess.run(['bash', '-c', line.replace('rqctl', rqctl, 1)], capture_output=True, text=True)
        assert done.returncode == 0, (line, done)
    assert redis('get', "it's a\ttabPAUSED").strip(), 'not paused'
    t.wait(r'\.\. paused|: paused by')
    t.wait(' resume ')
    redis('del', "it's a\ttabPAUSED")
    quit(t)

def helps():
    t = top()
    t.wait('^1/300')
    t.send('?')
    t.wait('^any key goes back')
    t.send('x')
    t.wait('^1/300')
    quit(t)

def rates():
    t = top()
    t.wait('^1/300')
    t.send('/q5\r')
    t.wait('^1/11')
    def works(what):
        redis('hincrby', 'q55STATS', 'failed', '300')
        redis('hincrby', 'q5STATS', 'acked', '300')
        return re.search(what, t.screen(), re.M)
    t.send('f')
    # Daemons add to the totals every 10 s: before that a rate is not known.
    t.wait(lambda: works(r'^> q55 +0 +0/4 +0 +0 +0\.0 +[0-9.]*[1-9][0-9.]* '), 60)
    t.wait(lambda: works(r'^  q5 +0 +0/4 +0 +0 +[0-9.]*[1-9][0-9.]* +0\.0 '))
    quit(t)

def redis_gone():
    t = top()
    t.wait('^1/300')
    redis('client', 'kill', 'type', 'normal', 'skipme', 'yes')
    t.wait('^1/300')
    os.rename(server[5:], server[5:] + '.away')
    redis2 = ['redis-cli', '-s', server[5:] + '.away']
    subprocess.run(redis2 + ['client', 'kill', 'type', 'normal', 'skipme', 'yes'], check=True, capture_output=True)
    t.wait(r'^redis unix:\S+: .*No such file')
    assert '> first' in t.screen() and '1/300 by trouble' in t.screen(), t.screen()
    t.send('j')
    t.wait('^2/300')
    os.rename(server[5:] + '.away', server[5:])
    t.wait(lambda: 'No such file' not in t.screen() and '2/300' in t.screen())
    quit(t)

def ends():
    for how in '\x03', '\x1c', signal.SIGTERM, signal.SIGHUP, 'q':
        t = top(interval='1h')
        t.wait('^1/300')
        during = t.attributes()
        assert not during[3] & (termios.ICANON | termios.ECHO) and during[3] & termios.ISIG, during
        t.send(how) if isinstance(how, str) else t.signal(how)
        assert t.end() == 0, (how, t.status)
        assert t.attributes() == t.before, repr(how)
        assert '1049' not in t.modes and {'25', '7'} <= t.modes, (how, t.modes)
        os.close(t.fd)
    t = top(interval='1h')
    t.wait('^1/300')
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
    t.wait('^1/300')
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
    at = until(rb'1/300 by trouble', at)
    t.send('\x1a')
    at = until(rb'\x1b\[\?1049l', at)
    at = until(rb'Stopped', at)
    t.send('stty -g >%s/stopped; echo read""y\n' % dir)
    at = until(rb'ready', at)
    t.send('fg\n')
    at = until(rb'\x1b\[\?1049h', at)
    at = until(rb'1/300 by trouble', at)
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
    t.wait('^1/300')
    t.signal(signal.SIGSTOP)
    os.waitpid(t.pid, os.WUNTRACED)
    changed = t.attributes()
    raw = list(changed)
    raw[3] |= termios.ICANON | termios.ECHO
    termios.tcsetattr(t.fd, termios.TCSANOW, raw)
    t.raw = b''
    t.signal(signal.SIGCONT)
    t.wait(lambda: b'\x1b[?1049h' in t.raw and b'1/300 by' in t.raw)
    assert t.attributes() == changed
    quit(t)

def colours():
    t = top(NO_COLOR='1')
    t.wait('^1/300')
    t.send('\r')
    t.wait('^Commands')
    quit(t)
    assert not re.search(rb'\x1b\[[0-9]*m', t.raw), 'colours'
    t = top(NO_COLOR='')
    t.wait('^1/300')
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
        lines = [p.stdout.readline() for _ in range(5)]
        assert re.match(r'redis unix:.*, 1 daemon, 20\S+Z\n$', lines[0]), lines
        assert re.match(r'QUEUE +WAIT +RUN +RETRY +DELAY +DEAD +OK/S +FAIL/S ', lines[1]), lines
        assert re.match(r'q7 +6 +0/4 ', lines[2]) and re.match(r'mail +0 ', lines[3]), lines
        assert lines[4] == '\n', lines
    p.send_signal(signal.SIGTERM)
    assert p.wait(60 * int(slow)) == 0
    p = subprocess.Popen([rqctl, '--server', server, 'status', '-w', '--interval', '100ms', 'q7'],
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    p.stdout.readline()
    p.stdout.close()
    assert p.wait(60 * int(slow)) == 0 and p.stderr.read() == '', p.returncode

for test in (fits, unnamed, trouble_first, sizes, sorts, moves, filters, opens, scrolls, commands, helps, rates, redis_gone,
             ends, hung, stops, continued, colours, refused, dumb, pipe):
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

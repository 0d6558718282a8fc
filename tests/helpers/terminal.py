"""A terminal for tests: a pty, and what a program has drawn on it.

It knows the sequences that rqctl status -w may send, and no others: anything else that would
drive a terminal, or does not fit onto a line, is an error.
"""
import errno
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
import unicodedata

SEQUENCE = re.compile(rb"\x1b\[(\?[0-9]+[hl]|[0-9]*m|H|K|J)")


def columns(char):
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


class Terminal:
    def __init__(self, argv, lines=24, width=80, slow=1, **env):
        self.slow, self.raw, self.rest = slow, b"", b""
        self.modes, self.status, self.misdrawn = set(), None, 0
        self.clear(lines, width)
        ready, go = os.pipe()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.read(ready, 1)
            os.environ.update(env)
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("4H", lines, width, 0, 0))
            os.execvp(argv[0], argv)
        self.before = self.attributes()
        os.write(go, b"x")
        os.close(ready)
        os.close(go)

    # -- what it shows: cells; the second one of a wide character is empty

    def clear(self, lines, width):
        self.lines, self.width = lines, width
        self.grid = [[" "] * width for _ in range(lines)]
        self.y = self.x = 0
        self.bad = ""

    def wrong(self, what):
        """The frame does not fit; after resize() one may be on its way that did."""
        self.bad = what
        self.misdrawn += 1

    def put(self, text):
        for char in text:
            wide = columns(char)
            if wide == 0 and self.x > 0:
                self.grid[self.y][self.x - 1] += char
            elif self.x + wide > self.width:
                self.wrong("too wide: %s" % self.line(self.y))
            else:
                self.grid[self.y][self.x:self.x + wide] = [char] + [""] * (wide - 1)
                self.x += wide

    def feed(self, data):
        self.raw += data
        data = self.rest + data
        self.rest = b""
        while data:
            if data[:1] == b"\x1b":
                m = SEQUENCE.match(data)
                if m is None and len(data) < 12:
                    self.rest = data
                    return
                assert m, "unknown sequence %r" % data[:20]
                self.sequence(m.group(1))
                data = data[m.end():]
            elif data[:2] == b"\r\n":
                self.x = 0
                if self.y + 1 < self.lines:
                    self.y += 1
                else:
                    self.wrong("scrolled")
                data = data[2:]
            elif data == b"\r":
                self.rest = data
                return
            else:
                n = re.match(rb"[^\x00-\x1f\x7f]+", data)
                assert n, "control character %r" % data[:20]
                text = n.group()
                data = data[len(text):]
                try:
                    self.put(text.decode())
                except UnicodeDecodeError as e:
                    assert not data and len(text) - e.start < 4, text
                    self.put(text[:e.start].decode())
                    self.rest = text[e.start:]
                    return

    def sequence(self, what):
        if what[:1] == b"?":
            (self.modes.add if what[-1:] == b"h" else self.modes.discard)(what[1:-1].decode())
        elif what == b"H":
            self.y = self.x = 0
            self.bad = ""
        elif what in (b"K", b"J"):
            if self.x >= self.width:
                self.wrong("erases the last column")
            self.grid[self.y][self.x:] = [" "] * (self.width - self.x)
            for y in range(self.y + 1, self.lines if what == b"J" else 0):
                self.grid[y] = [" "] * self.width

    def line(self, y):
        return "".join(self.grid[y]).rstrip()

    def screen(self):
        return "\n".join(self.line(y) for y in range(self.lines))

    # -- the program

    def pump(self, timeout=0.05):
        """Reads what has come; False: the program has closed its terminal."""
        if not select.select([self.fd], [], [], timeout)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError as e:
            if e.errno == errno.EIO:
                return False
            raise
        self.feed(data)
        return True

    def wait(self, what, seconds=30):
        """Waits until a regular expression is on the screen, or a function is true."""
        until = time.monotonic() + seconds * self.slow
        test = what if callable(what) else lambda: re.search(what, self.screen(), re.M)
        while self.bad or not test():
            if time.monotonic() > until or not self.pump():
                raise AssertionError("waited for %s on: %s\n%s" % (what, self.bad, self.screen()))
        return True

    def send(self, keys):
        os.write(self.fd, keys.encode() if isinstance(keys, str) else keys)

    def resize(self, lines, width):
        self.clear(lines, width)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("4H", lines, width, 0, 0))

    def signal(self, number):
        os.kill(self.pid, number)

    def attributes(self):
        return termios.tcgetattr(self.fd)

    def end(self, seconds=30):
        """Its exit status, or minus the signal that ended it."""
        until = time.monotonic() + seconds * self.slow
        while self.status is None:
            if self.pump(0.02) is False:
                time.sleep(0.01)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > until:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                raise AssertionError("it did not end: %s" % self.screen())
        while select.select([self.fd], [], [], 0)[0] and self.pump(0):
            pass
        return self.status

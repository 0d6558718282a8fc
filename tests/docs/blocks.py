#!/usr/bin/env python3
"""Runs the code blocks of Markdown documents, in order, and compares what they print.

A comment right behind each block says what it is; readers do not see it:

    <!-- run: user -->          commands, typed by an ordinary user who has sudo
    <!-- run: root -->          commands, typed by root
    <!-- run: user, until -->   the same, repeated until it prints what follows
    <!-- prints -->             what the block before prints; a line … stands for any lines
    <!-- conf -->               a configuration that rqd -t accepts
    <!-- file: PATH MODE -->    a file that the reader writes, with sudo
    <!-- program: LANGUAGE -->  a whole program, run by a test of its own
    <!-- not run: REASON -->

    blocks.py --program LANGUAGE DOC            prints that program
    blocks.py --lint DOC...                     complains about blocks without a comment
    blocks.py [--as-root] --session COMMAND --check COMMAND DOC...
                                                TAP; COMMAND WHO starts a shell of that user
"""
import argparse
import base64
import os
import re
import select
import subprocess
import sys
import time

MARK = re.compile(r"^\s*<!-- (run: (?:user|root)(?:, until)?|prints|conf|file: \S+ \d+|program: \S+|not run: .+) -->$")
PATIENCE = 20


def blocks(path):
    """Returns (line, mark, text) of each fenced or indented block; mark is None without one."""
    lines = open(path, encoding="utf-8").read().split("\n")
    found, i, in_list = [], 0, False

    def add(line, text):
        mark = MARK.match(lines[i]) if i < len(lines) else None
        found.append((line, mark and mark.group(1), text))

    while i < len(lines):
        line, start, text = lines[i], i + 1, []
        i += 1
        if line.lstrip().startswith("```"):
            indent = len(line) - len(line.lstrip())
            while i < len(lines) and not lines[i].lstrip().startswith("```"):
                text.append(lines[i][indent:])
                i += 1
            i += 1
            add(start, "\n".join(text) + "\n")
        elif line.startswith("    ") and not in_list and i > 1 and not lines[i - 2].strip():
            i -= 1
            while i < len(lines) and (lines[i].startswith("    ") or not lines[i].strip()):
                text.append(lines[i][4:])
                i += 1
            add(start, "\n".join(text).rstrip() + "\n")
        elif line.strip() and not MARK.match(line):
            in_list = bool(re.match(r"\s*([-*]|\d+\.) ", line)) or (in_list and line.startswith(" "))
    return found


# Replacements for text that differs from run to run, for the document and the screen
# alike.
VARYING = [
    (r"\x1b\[[0-9;]*[mK]", ""),
    (r"^\(integer\) ", ""),    # redis-cli, on a terminal
    (r"^[A-Z][a-z]{2} +\d+ [\d:]{8} \S+ [^:]*\[\d+\]: ", "JOURNAL "),
    (r"\d{4}-\d\d-\d\d[T ][\d:.]+(Z| UTC|[+-]\d\d:\d\d)", "TIME"),
    (r"\b\d{13}-\d+\b", "LETTER"),
    (r"version [\d.]+", "version X"),
    (r"\b(pid|duration|cpu|maxrss|delay|instance|config|version|size|after|late)=\S+", r"\1=X"),
    (r"maxrss \d+[KM]", "maxrss X"),
    (r"after [\d.]+(µs|us|ms|s)\b", "after X"),
    (r"\b\d+(\.\d+)?(us|ms|s)\b", "AGE"),
    (r"~[\w.-]+", "~ID"),
    (r"#\S+\.h\d+", "#HELD"),
    (r"^(host +)\S+", r"\1HOST"),
    (r"[ \t]+", " "),
]


def normal(text):
    lines = []
    for line in text.rstrip("\n").split("\n"):
        for what, by in VARYING:
            line = re.sub(what, by, line)
        lines.append(line.strip())
    return lines


def matches(wanted, got):
    """Whether lines are as wanted, where … stands for any number of lines."""
    if not wanted:
        return not got
    if wanted[0] == "…":
        return any(matches(wanted[1:], got[i:]) for i in range(len(got) + 1))
    return bool(got) and wanted[0] == got[0] and matches(wanted[1:], got[1:])


class Shell:
    """A shell of somebody, that is fed one block after the other."""

    def __init__(self, command):
        self.p = subprocess.Popen(command, shell=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, start_new_session=True)
        self.n = 0

    def run(self, text):
        """Returns the exit status (None: the shell is gone, or hangs) and what was printed."""
        self.n += 1
        end = "@@end %d " % self.n
        coded = base64.b64encode(text.encode()).decode()
        self.p.stdin.write(("echo %s | base64 -d >~/.block; set -e; . ~/.block </dev/null; "
                            "status=$?; set +e; echo; echo '%s'$status\n" % (coded, end)).encode())
        self.p.stdin.flush()
        out, limit = b"", time.time() + 120
        while time.time() < limit:
            if not select.select([self.p.stdout], [], [], 1)[0]:
                continue
            piece = os.read(self.p.stdout.fileno(), 65536)
            if not piece:
                break
            out += piece
            found = re.search(end.encode() + rb"(\d+)\n", out)
            if found:
                printed = out[:found.start()].decode(errors="replace")
                return int(found.group(1)), printed[:-1] if printed.endswith("\n") else printed
        return None, out.decode(errors="replace")


class Run:
    def __init__(self, options):
        self.options, self.shells, self.tests, self.failed = options, {}, 0, 0

    def report(self, passed, what, explanation=""):
        self.tests += 1
        self.failed += not passed
        print("%sok %d - %s" % ("" if passed else "not ", self.tests, what), flush=True)
        for line in explanation.rstrip("\n").split("\n") if not passed else []:
            print("# " + line, flush=True)

    def shell(self, who):
        if self.options.as_root:
            who = "root"
        shell = self.shells.get(who)
        if shell is None or shell.p.poll() is not None:
            shell = self.shells[who] = Shell(self.options.session + " " + who)
        return shell

    def commands(self, where, mark, text, wanted):
        who = mark.split()[1].rstrip(",")
        limit = time.time() + PATIENCE
        while True:
            status, got = self.shell(who).run(text)
            if status is None:
                self.shells.clear()
            as_wanted = wanted is None or matches(normal(wanted), normal(got))
            if (status == 0 and as_wanted) or "until" not in mark or time.time() > limit:
                break
            time.sleep(0.3)
        first = text.strip().split("\n")[0]
        self.report(status == 0, "%s: %s" % (where, first),
                    "%s\nstatus %s, printed:\n%s" % (text, status, got))
        if wanted is not None:
            self.report(as_wanted, where + ": prints what it says",
                        "printed:\n%s\nthe document says:\n%s" % (got, wanted))

    def document(self, path):
        todo = blocks(path)
        for i, (line, mark, text) in enumerate(todo):
            where = "%s:%d" % (os.path.basename(path), line)
            wanted = None
            if i + 1 < len(todo) and todo[i + 1][1] == "prints":
                wanted = todo[i + 1][2]
            if mark is None:
                self.report(False, where + ": a block without a comment that says what it is")
            elif mark.startswith("run:"):
                self.commands(where, mark, text, wanted)
            elif mark.startswith("file:"):
                _, name, mode = mark.split()
                self.commands(where, "run: root", "mkdir -p %s; cat >%s <<'END-OF-BLOCK'\n%sEND-OF-BLOCK\nchmod %s %s\n"
                              % (os.path.dirname(name), name, text, mode, name), None)
            elif mark == "conf":
                done = subprocess.run(self.options.check, shell=True, input=text.encode(),
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
                self.report(done.returncode == 0, where + ": the configuration is accepted",
                            done.stdout.decode(errors="replace") + text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lint", action="store_true")
    parser.add_argument("--program")
    parser.add_argument("--as-root", action="store_true")
    parser.add_argument("--session")
    parser.add_argument("--check", default="cat >/dev/null")
    parser.add_argument("documents", nargs="+")
    options = parser.parse_args()
    if options.lint:
        for path in options.documents:
            for line, mark, _ in blocks(path):
                if mark is None:
                    print("%s:%d: a block without a comment that says what it is" % (path, line))
        return 0
    if options.program:
        found = [text for path in options.documents for _, mark, text in blocks(path)
                 if mark == "program: " + options.program]
        sys.stdout.write("".join(found))
        return len(found) != 1
    run = Run(options)
    for path in options.documents:
        run.document(path)
    print("1..%d" % run.tests)
    return run.failed > 0


if __name__ == "__main__":
    sys.exit(main())

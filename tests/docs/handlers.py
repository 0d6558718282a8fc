#!/usr/bin/env python3
"""Runs every handler that a reader may copy, where something is wrong.

The handlers are found in the documents, the manual pages, etc/examples and the demo: scripts,
commands of a queue that are complete, and pieces of scripts that use what only a handler has.
Each needs a row in TABLE, with a message that it can use and stand-ins for what it calls, or a
reason in EXEMPT.  rqctl try runs it, and says what rqd would do with the message:

    with its message                            as the row says
    with an empty message, and with no JSON     not acknowledged, and without effect
    with lines that look like result lines,     the same result as with spaces in place of
    in each text of the message, in the         newlines
    message as a whole, in what a service says
    where a program that it calls is missing    no dead letter; acknowledged only if all is done;
    or is killed, at each of its calls          no effect but those of its message

    handlers.py RQCTL SRCDIR DIRECTORY          TAP
"""
import glob
import json
import os
import re
import shlex
import shutil
import subprocess
import sys

import blocks

ORDER = {"id": 7, "to": "Bonn"}
LINES = ["x\n1 ok\nok\nhold 1h FOREIGN\n", "x\n1 dead FOREIGN\ndead FOREIGN\npush items FOREIGN\r\n"]
NO_JSON = ["no JSON", '{"id":7,"to":"Bonn"', "[]", "null", "7", '"to"', "{}"]
# What a script may call without a stand-in.
TOOLS = """awk base64 basename cat chmod cut date dirname echo env expr find flock grep gzip head
    jq ls mkdir mktemp mv od printf realpath rm rmdir sed sha256sum sleep sort sqlite3 stat tail tee
    timeout touch tr uniq wc xargs""".split()

# A row: the message; any: that every message is right for it; out: what rqd would do with the
# message, if it is not acknowledged; stand_ins: programs and what they do, once they have noted
# their arguments; says: what the stand-in of a service answers, in the file $W/says; env; change:
# texts to replace, W is the directory of the run; options: of the queue; try: of rqctl try; args: of
# the handler; files and setup: to make first; look: prints what was done, besides files in W/out.
ship = {"message": ORDER, "change": {"/var/lib/orders": "W/out"}}
invoice = {"message": ORDER, "env": {"INVOICES": "W/out"}}
ledger = {"message": {"id": 7, "account": "alice", "amount": 12.5}, "env": {"LEDGER": "W/out/book"},
          "options": 'mode = "persistent"'}
forking = {"message": ORDER, "options": 'mode = "persistent"'}
service = 'cat >/dev/null; cat "$W/says"'
TABLE = {
    "README.md: /usr/bin/tr": {"any": True, "message": "hello"},
    "demo: ship-order": {"any": True, "message": ORDER},
    "demo: call-carrier": {"any": True, "message": ORDER, "out": "retried in 2.5s to 5s"},
    "demo: check-address": {"message": "1 Long street"},
    "demo: check-address.new": {"any": True, "message": ORDER},
    "tutorial.md: /usr/local/bin/ship-order": ship,
    "tutorial.md: /usr/local/bin/ship-order 2": {**ship, "fine": ["{}", "null"]},
    "operations.md: /usr/local/bin/ship-order": {"any": True, "message": ORDER},
    "cookbook.md: sh": invoice,
    "cookbook.md: python3": invoice,
    "cookbook.md: php": invoice,
    "cookbook.md: node": invoice,
    "cookbook.md: ruby": invoice,
    "cookbook.md: go": invoice,
    "cookbook.md: steps": {
        "message": ORDER, "out": "deferred for 3d; its next delivery would get RQD_SAVED=review TIME", "saves": r"ship|review \d{10}",
        "stand_ins": {"charge-card": "", "ship-parcel": "", "ask-for-review": ""}},
    "cookbook.md: steps, the last": {
        "message": ORDER, "try": ["--saved", "review 1000"],
        "stand_ins": {"charge-card": "", "ship-parcel": "", "ask-for-review": ""}},
    "cookbook.md: approval": {
        "message": ORDER, "env": {"APPROVED": "W/in"}, "files": {"in/7": ""},
        "stand_ins": {"pay-refund": ""}},
    "cookbook.md: carrier": {
        "any": True, "message": ORDER, "env": {"CARRIER": "http://carrier/"},
        "stand_ins": {"curl": service}, "says": "200 ", "also_says": ["429 ", "500 ", "429 5"]},
    "cookbook.md: variables": {
        "message": ORDER, "options": 'env_message = {"TO=to", "WEIGHT=weight"} time_limit = 1m',
        "stand_ins": {"print-label": ""}},
    "other-systems.md: sidekiq": {
        "message": {"class": "ShipOrder", "args": [7, "Bonn"]}, "env": {"JOBS": "W/in/jobs"},
        "files": {"in/jobs.rb": 'class ShipOrder\n  def perform(order, to) = '
                                'File.write("W/out/done", "#{order} #{to}\\n")\nend\n'}},
    "other-systems.md: sidekiq-due": {
        "any": True, "message": "", "stand_ins": {"redis-cli": 'cat "$W/says"'}, "says": "0"},
    "other-systems.md: /usr/bin/redis-cli": {
        "any": True, "message": "", "change": {"/usr/bin/": "W/bin/"},
        "stand_ins": {"redis-cli": 'case " $* " in *" -e "*) exit 1 ;; esac; echo NOAUTH'},
        "out": "retried in 2.5s to 5s"},
    "other-systems.md: laravel": {
        "message": {"data": {"command": 'O:9:"ShipOrder":1:{s:2:"to";s:4:"Bonn";}'}},
        "env": {"APP": "W/in/app.php"},
        "files": {"in/app.php": """<?php namespace Illuminate\\Container;
class Container {
    static function getInstance() { return new Container; }
    function call($what) { $what(); }
}
eval('class ShipOrder {
    public $to;
    function handle() { file_put_contents("W/out/done", $this->to); }
}');
"""}},
    "other-systems.md: celery": {
        # [[7, "Bonn"], {}, {}]
        "message": {"headers": {"task": "shop.ship", "eta": None}, "body": "W1s3LCAiQm9ubiJdLCB7fSwge31d"},
        "env": {"PYTHONPATH": "W/in"},
        "files": {"in/shop.py": """class app:
    class loader:
        import_default_modules = staticmethod(lambda: None)
    tasks = {"shop.ship": lambda order, to: open("W/out/done", "w").write(f"{order} {to}")}
"""}},
    "migrating.md: /bin/sh": {
        "message": "an order", "fine": NO_JSON, "change": {"/usr/local/bin/": ""}, "stand_ins": {"ship-order": ""}},
    "rqd-handler.7: DESCRIPTION": {
        "any": True, "message": ORDER, "change": {"/var/spool/orders": "W/out"}},
    "rqd-handler.7: THE COMMAND": {
        "any": True, "message": ORDER, "env": {"HOME": "W/out"}, "stand_ins": {"import-order": "cat"}},
    "rqd-handler.7: RESULT LINES 2": {
        "any": True, "message": ORDER, "env": {"CARRIER": "http://carrier/"}, "stand_ins": {"curl": service},
        "says": "shipped", "also_says": ["late 5", "unknown", "closed", ""]},
    "rqd-handler.7: RESULT LINES 3": {
        "message": {"id": 7, "pages": [1, 2]}},
    "rqd-handler.7: RESULT LINES 4": {"message": ORDER},
    "rqd-handler.7: Saved texts": {
        "any": True, "message": ORDER, "head": "#!/bin/sh\nset -eu\norder=7\n", "saves": "paid",
        "stand_ins": {"charge-card": "", "ship-parcel": ""}},
    "rqd-handler.7: OUTPUT MESSAGES": {
        "message": {"items": [{"id": 1}]}, "fine": ["{}", "[]", "null"], "change": {"/usr/bin/": "W/bin/"},
        "options": 'output = "push:items" pushes = {"items"}', "out": "acked, with 1 message for items"},
    "rqd-handler.7: TIME LIMITS": {
        "any": True, "message": ORDER, "head": "#!/bin/sh\nset -eu\n", "env": {"CARRIER": "http://carrier/"},
        "options": "time_limit = 1m", "stand_ins": {"curl": service}, "says": "shipped"},
    "rqd-handler.7: Messages": {
        "message": "an order", "options": 'mode = "persistent" framing = "line"', "fine": NO_JSON,
        "stand_ins": {"do-something": ""}},
    "rqd-handler.7: Answers": {
        "message": ORDER, "fine": ["[]", "null", "7", '"to"', "{}"], "options": 'mode = "persistent"',
        "change": {"import json, sys\n": 'import json, sys\ndef ship(order): open("W/out/done", "w").write('
                   'str(order)) and "FOREIGN" in str(order) and int(order["to"])\n'}},
    "rqd-handler.7: EXAMPLES": {
        "any": True, "message": ORDER, "change": {"/srv/out": "W/out", "mktemp -d": "mktemp -d W/tmp.XXXXXX"},
        "stand_ins": {"convert-it": 'cat "$1" >"$2"'}},
    "rqd-handler.7: BATCHES": {
        "any": True, "message": "7,Bonn", "options": 'batch = 2 framing = "raw"',
        "change": {"/usr/bin/": "W/bin/", "/var/lib/clicks": "W/out"},
        "setup": 'sqlite3 "$W/out/clicks.db" "CREATE TABLE clicks (id, place)"',
        "look": 'sqlite3 "$W/out/clicks.db" "SELECT * FROM clicks"'},
    "rqd-handler.7: BATCHES 2": {
        "any": True, "message": "7", "options": 'batch = 2 framing = "raw"', "change": {"/usr/bin/": "W/bin/"},
        "stand_ins": {"psql": 'cat >"$W/out/rows"'}},
    "rqd-handler.7: BATCHES 3": {
        "any": True, "message": "a name", "options": 'batch = 2 framing = "raw"',
        "change": {"/usr/bin/": "W/bin/", "/usr/local/bin/": "W/bin/"}, "stand_ins": {"resize": ""}},
    "rqd.8: /bin/sh": {"any": True, "message": ORDER},
    "rqd.conf.5: /bin/sh": {"any": True, "message": ORDER, "env": {"LOG": "W/out/log"},
                            "change": {"${LOG}": "W/out/log"}},
    "mail.sh": {
        "message": {"id": "m-1", "to": "a@example.org", "subject": "Gr\u00fc\u00dfe", "text": "How are you?"},
        "env": {"SENDMAIL": "W/bin/sendmail"}, "stand_ins": {"sendmail": 'cat >>"$W/out/mail"'}},
    "alert.sh": {
        "message": {"id": "o-9", "queue": "orders", "letter": "1795353710187-0", "reason": "status",
                    "error": "no such\ncustomer\n", "host": "web1"},
        "options": 'batch = 2 framing = "raw"', "env": {"SENDMAIL": "W/bin/sendmail"},
        "stand_ins": {"sendmail": 'cat >>"$W/out/mail"'}},
    "postgres.sh": {"message": ORDER, "stand_ins": {"psql": 'cat <&3 >"$W/out/row"'}},
    "sqlite.sh": {
        "message": ORDER, "env": {"DATABASE": "W/out/orders.db"},
        "setup": 'sqlite3 "$W/out/orders.db" "CREATE TABLE orders (id TEXT PRIMARY KEY, body TEXT NOT NULL)"',
        "look": 'sqlite3 "$W/out/orders.db" "SELECT * FROM orders"'},
    "remind.sh": {
        "message": "remind:17:digest", "env": {"SEND": "W/bin/send"},
        "stand_ins": {"send": "", "redis-cli": "case $1 in HGET) echo 3600 ;; *) echo OK ;; esac"}},
    "thumbnail.sh": {
        "message": "2026/cat.jpg", "env": {"IMAGES": "W/in", "THUMBNAILS": "W/out"},
        "files": {"in/2026/cat.jpg": "cat"}, "stand_ins": {"convert": "cat"}},
    "webhook.sh": {
        "any": True, "message": ORDER, "env": {"WEBHOOK_URL": "http://hook/"}, "stand_ins": {"curl": service},
        "says": "200", "also_says": ["400", "500"]},
    "container/ship-order": {"any": True, "message": ORDER},
    "persistent/ledger.c": ledger,
    "persistent/ledger.js": ledger,
    "persistent/ledger.php": ledger,
    "persistent/ledger.pl": ledger,
    "persistent/ledger.py": ledger,
    "persistent/ledger.sh": {
        **ledger, "message": "alice 1250", "options": 'mode = "persistent" framing = "line"'},
    # A script each, which dies of what is wrong with the message.
    "persistent/forking.py": {
        **forking, "args": ["W/in/script"], "fine": ["{}"],
        "files": {"in/script": 'import json, sys\nopen("W/out/done", "w").write(str(json.load(sys.stdin).get("to")))\n'}},
    "persistent/forking.rb": {
        **forking, "args": ["W/in/script"],
        "files": {"in/script": 'require "json"\nFile.write("W/out/done", JSON.parse($stdin.read).fetch("to"))\n'}},
    "persistent/forking.pl": {
        **forking, "args": ["W/in/script"],
        "files": {"in/script": 'use JSON::PP; my $o = decode_json(join "", <STDIN>);\n'
                               'open my $f, ">", "W/out/done"; print {$f} $o->{to} // die "no to";\n'}},
}
# Found, and not run: why.
EXEMPT = {
    "migrating.md: /usr/bin/php": "a reader's own program",
    "rqd-handler.7: RESULT LINES": "a list of lines, without foreign text",
    "rqd-handler.7: OUTPUT MESSAGES 2": "two lines for two modes",
    "rqd-handler.7: Outcome": "lines of a handler that is not shown",
    "redis.md: /usr/bin/rqctl": "a probe of the connection; there is no effect",
    "rqd.conf.5: /bin/sh 2": "a channel: its messages are not kept",
}


# -- finding -----------------------------------------------------------------------------

# What only a handler has.
HANDLER = re.compile(r"^#!|>&3|\$\{?RQD_|RQD_DEADLINE")
COMMAND = re.compile(r"\bcommand\s*=\s*(\{(?:[^{}']|'[^']*')*\})")
PLACES = ("/usr/local/bin/", "/srv/", "/app/", "$PWD/")


def in_markdown(path):
    """Yields names, interpreters or commands, and texts."""
    for _, mark, text in blocks.blocks(path):
        if mark and mark.startswith("program: ") and (HANDLER.search(text) or mark == "program: go"):
            yield mark[9:], text
        elif mark and mark.startswith("file: ") and text.startswith("#!"):
            yield mark.split()[1], text
        elif mark and text.startswith("#!"):
            yield "script", text
        yield from commands(text)
    for line in re.findall(r"`(command = \{.*?\})`", open(path, encoding="utf-8").read()):
        yield from commands(line)


def in_manual(path):
    place, text = "", None
    for line in open(path, encoding="utf-8"):
        if line.startswith((".Sh ", ".Ss ")):
            place = line[4:].strip().strip('"')
        elif line.startswith(".Bd -literal"):
            text = ""
        elif line.startswith(".Ed"):
            text = re.sub(r"\\(e|-|\(dq|&)", lambda m: {"e": "\\", "-": "-", "(dq": '"', "&": ""}[m[1]], text)
            if HANDLER.search(text) and not COMMAND.search(text):
                yield place, text
            for name, command in commands(text):
                yield place if path.endswith("rqd-handler.7") else name, command
            text = None
        elif text is not None:
            text += line


def commands(text):
    """The commands that are not a reader's own program, as lists in rqd.conf."""
    lists = COMMAND.findall(text)
    for words in re.findall(r"rqd -q.* -- (.*?)(?: &)?$", text, re.M):
        lists.append("{" + ", ".join(json.dumps(word) for word in shlex.split(words)) + "}")
    for command in lists:
        first = re.search(r'"(.*?)"', command)[1]
        if not first.startswith(PLACES):
            yield first, command


def found(srcdir):
    def numbered(document, handlers):
        seen = {}
        for name, text in handlers:
            seen[name] = seen.get(name, 0) + 1
            yield f"{document}: {name}" + (f" {seen[name]}" if seen[name] > 1 else ""), text

    for path in ["README.md", *sorted(glob.glob("doc/*.md", root_dir=srcdir))]:
        yield from numbered(os.path.basename(path), in_markdown(f"{srcdir}/{path}"))
    for path in sorted(glob.glob("man/*.[1-8]", root_dir=srcdir)):
        yield from numbered(os.path.basename(path), in_manual(f"{srcdir}/{path}"))
    demo = open(f"{srcdir}/demo", encoding="utf-8").read()
    for name, text in re.findall(r"""^cat >"\$D/(\S+)" <<'H'\n(.*?)^H$""", demo, re.M | re.S):
        yield f"demo: {name}", text
    examples = f"{srcdir}/etc/examples"
    for path in sorted(glob.glob(examples + "/**", recursive=True)):
        if os.path.isfile(path):
            text = open(path, encoding="utf-8").read()
            if text.startswith("#!") or path.endswith(".c"):
                yield os.path.relpath(path, examples), text


# -- running -------------------------------------------------------------------------------

def plant(message, text):
    """Yields the message with the text in each of its members in turn, and alone."""
    yield text
    if isinstance(message, str):
        yield message + text
        return
    def walk(value, put):
        if isinstance(value, (dict, list)):
            for key in value if isinstance(value, dict) else range(len(value)):
                yield from walk(value[key], lambda new, key=key: put(
                    {**value, key: new} if isinstance(value, dict) else value[:key] + [new] + value[key + 1:]))
        else:
            yield put(value + text if isinstance(value, str) else text)
    for planted in walk(message, lambda new: new):
        yield json.dumps(planted)


class Outcome:
    def __init__(self, printed, did, used):
        self.printed, self.did, self.used = printed, did, used
        last = [line for line in printed.split("\n") if line.startswith("rqctl: ")][-1:]
        would = re.search(r"would be (.*)", last[0]) if last else None
        self.would = re.sub(r"\d{10}", "TIME", would[1]) if would else "none"

        self.wrong = bool(re.search("broke the protocol|may not push", printed))

    acked = property(lambda self: self.would.startswith("acked"))
    dead = property(lambda self: self.would.startswith("a dead letter"))

    def __str__(self):
        return "%s\ndid: %s" % (self.printed.strip(), sorted(self.did))


class Handler:
    """One that is run, each time in a new directory."""

    def __init__(self, name, text, row, rqctl, top):
        self.name, self.text, self.row, self.rqctl, self.top = name, text, row, rqctl, top
        self.message = row["message"] if isinstance(row["message"], str) else json.dumps(row["message"])
        self.program = None

    def interpreter(self):
        """Why it cannot be run here, or None."""
        first = self.text.split("\n")[0]
        if first.startswith("#!") and not os.access(first[2:].split()[0], os.X_OK):
            return "no " + first[2:]
        if self.name.endswith(".c") or self.name.endswith(": go"):
            source = f"{self.top}/source" + (".c" if self.name.endswith(".c") else ".go")
            self.program = f"{self.top}/program"
            with open(source, "w", encoding="utf-8") as file:
                file.write(self.text)
            build = ["cc", "-o", self.program, source, "-ljansson"] if source.endswith(".c") else [
                "env", "GO111MODULE=off", f"GOCACHE={self.top}/go", "go", "build", "-o", self.program, source]
            if not shutil.which(build[0] if source.endswith(".c") else "go"):
                return "no compiler"
            subprocess.run(build, check=True)
        return None

    def write(self, path, text, mode=0o755):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)

    def shell(self, command):
        return subprocess.run(["/bin/sh", "-c", f"W={self.work}\n{command}"], check=True,
                              stdout=subprocess.PIPE).stdout.decode()

    def here(self, text):
        for old, new in self.row.get("change", {}).items():
            text = text.replace(old, new)
        return re.sub(r"(?<!\w)W/", self.work + "/", text)

    def prepare(self, broken, says):
        """Makes the directory; broken: (program, number of its call, what happens)."""
        row, self.work = self.row, f"{self.top}/w"
        shutil.rmtree(self.work, ignore_errors=True)
        for directory in ("bin", "in", "out"):
            os.makedirs(f"{self.work}/{directory}")
            os.chmod(f"{self.work}/{directory}", 0o777)
        for name, text in row.get("files", {}).items():
            self.write(f"{self.work}/{name}", self.here(text))
        self.write(f"{self.work}/says", says)
        calls = self.text + "".join(row.get("stand_ins", {}).values())
        for name in [t for t in TOOLS if re.search(rf"\b{t}\b", calls)] + list(row.get("stand_ins", {})):
            does = row.get("stand_ins", {}).get(name)
            if (name, "missing") == (broken[0], broken[2]) or (does is None and not shutil.which(name)):
                continue
            text = f'#!/bin/sh\nW={self.work}\necho {name} >>"$W/used"\n'
            if name == broken[0]:
                text += f'[ "$(/usr/bin/grep -cx {name} "$W/used")" -ne {broken[1]} ] || kill -{broken[2]} $$\n'
            if does is None:
                text += f'exec {shutil.which(name)} "$@"\n'
            else:
                text += f"""printf '[%s]' {name} "$@" >>"$W/did"; echo >>"$W/did"\n{does}\n"""
            self.write(f"{self.work}/bin/{name}", text)
        self.shell(row.get("setup", ""))

    def configuration(self):
        if self.text.startswith("{"):
            command = self.here(self.text)
        else:
            if self.program is None:
                self.write(f"{self.work}/handler", self.here(self.row.get("head", "") + self.text))
            words = [self.program or f"{self.work}/handler", *map(self.here, self.row.get("args", []))]
            command = "{" + ", ".join(f'"{word}"' for word in words) + "}"
        env = {"PATH": "W/bin", **self.row.get("env", {})}
        user = 'user = "root"' if os.getuid() == 0 else ""
        return (f'queue "q" {{ command = {command} {user} {self.row.get("options", "")}\n env = {{'
                + ", ".join(f'"{name}={self.here(value)}"' for name, value in env.items()) + "} }\n"
                f'queue "items" {{ concurrency = 0 }}\n')

    def run(self, message, broken=(None, 0, None), says=None):
        says = self.row.get("says", "") if says is None else says
        self.prepare(broken, says)
        self.write(f"{self.work}/rqd.conf", self.configuration(), 0o644)
        done = subprocess.run([self.rqctl, "-c", f"{self.work}/rqd.conf", "try", "--id", "7",
                               *self.row.get("try", []), "q"], input=message.encode(), timeout=120,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        did = {"printed: " + line for line in done.stdout.decode(errors="replace").split("\n")[:-1]}
        did |= {re.sub(r"(?<=\[--max-time\]\[)[1-5]\d|(?<=/tmp\.)\w{6}", "X", line) for line in self.lines("did")}
        for path in glob.glob(f"{self.work}/out/**", recursive=True):
            name = path[len(self.work) + 1:]
            if os.path.isfile(path) and not re.search(r"tmp|jpg\.|\.db$", name):
                with open(path, encoding="utf-8", errors="replace") as file:
                    text = file.read()
                if text:    # >> makes an empty one
                    did.add(name + ": " + text)
        if "look" in self.row:
            did |= set(self.shell(self.row["look"]).split("\n")) - {""}
        return Outcome(done.stderr.decode(errors="replace"), did, self.lines("used"))

    def lines(self, name):
        try:
            with open(f"{self.work}/{name}", encoding="utf-8", errors="replace") as file:
                return file.read().split("\n")[:-1]
        except FileNotFoundError:
            return []

    # What is wrong, one sentence each.

    def works(self):
        self.right = self.run(self.message)
        if self.right.would != self.row.get("out", "acked"):
            yield "its message: %s" % self.right

    def bad_messages(self):
        if self.row.get("any"):
            return
        for message in ["", "\n", *NO_JSON]:
            got = self.run(message)
            if message in self.row.get("fine", []):
                continue
            if got.acked:
                yield "%r is acknowledged: %s" % (message, got)
            if got.did:
                yield "%r has an effect: %s" % (message, got)

    def foreign(self, message, says=None, of=""):
        """A newline must not make another result of the message than a space."""
        lines, spaces = self.run(message, says=says), self.run(
            re.sub(r"(?:\r|\\r)?(?:\n|\\n)", " ", message), says=says and says.replace("\n", " "))
        refused = re.search("status 65|without being run|cannot be framed", lines.printed)
        if (lines.would, lines.wrong) != (spaces.would, spaces.wrong) and not refused:
            yield "%s%r: %s\nwith spaces: %s" % (of, says or message, lines, spaces)

    def foreign_texts(self):
        for text in LINES:
            for message in plant(self.row["message"], text):
                yield from self.foreign(message)
            if "says" in self.row:
                for says in [text, self.row["says"] + text]:
                    yield from self.foreign(self.message, says, "the service says ")

    def broken_machine(self):
        for says in [None, *self.row.get("also_says", [])]:
            right = self.run(self.message, says=says)
            for tool in sorted(set(right.used)):
                calls = right.used.count(tool)
                for n, what in [(1, "missing"), (1, "SEGV"), *((n + 1, "KILL") for n in range(calls))]:
                    got = self.run(self.message, (tool, n, what), says)
                    where = "%s is %s (call %d)" % (tool, what, n)
                    if got.dead and not right.dead:
                        yield "%s: a dead letter: %s" % (where, got)
                    if got.acked and got.did != right.did:
                        yield "%s: acknowledged: %s" % (where, got)
                    if got.did - right.did:
                        yield "%s: an effect: %s" % (where, got)
                    saved = re.search(r"RQD_SAVED=(.*)", got.printed)
                    if saved and not re.fullmatch(self.row.get("saves", ""), saved[1]):
                        yield "%s: saves: %s" % (where, got)


def main():
    rqctl, srcdir, top = sys.argv[1:]
    tests, failed = 0, 0

    def report(what, wrong):
        nonlocal tests, failed
        tests += 1
        failed += bool(wrong)
        print("%sok %d - %s" % ("not " if wrong else "", tests, what), flush=True)
        for line in "\n".join(wrong[:6]).split("\n") if wrong else []:
            print("# " + line[:300], flush=True)

    handlers = dict(found(srcdir))
    known = {name.split(", ")[0] for name in TABLE} | set(EXEMPT)
    report("each handler has a row", ["no row: " + name for name in handlers if name not in known])
    report("each row has a handler", ["no handler: " + name for name in known if name not in handlers])
    for name, row in TABLE.items():
        text = handlers.get(name.split(", ")[0])
        if text is None or not re.search(os.environ.get("HANDLERS", ""), name):
            continue
        handler = Handler(name, text, row, rqctl, top)
        missing = handler.interpreter()
        if missing:
            tests += 1
            print("ok %d # SKIP %s: %s" % (tests, name, missing))
            continue
        report(name, list(handler.works()))
        report(name + ": bad messages", list(handler.bad_messages()))
        report(name + ": foreign lines", list(handler.foreign_texts()))
        report(name + ": a broken machine", list(handler.broken_machine()))
    print("1..%d" % tests)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/python3
"""Runs a Python script once for each message, each time in a new process, without
starting the interpreter again: a persistent handler that loads modules once and forks.

    queue "orders" {
        command     = {"/usr/local/bin/forking.py", "/usr/local/bin/ship-order.py",
                       "json", "sqlite3"}          # the script, and modules to load
        user        = "orders"
        mode        = "persistent"
        concurrency = 4
    }

The script is one for mode "exec", unchanged: the message is on standard input, RQD_ID
and RQD_ATTEMPT are in the environment, and the exit status decides.  Status 65 makes
a dead letter.  Reload rqd after a change of the script.

The modules must not start threads or open connections: all processes would share them.
Processes that the script leaves behind run until the queue's process ends.
"""

import atexit
import gc
import importlib
import os
import sys
import types

DEAD = 65  # the script's status for a message that can never succeed


def messages(stream):
    """Yields number, attempt, id and text of each message; stream must be binary."""
    for header in stream:
        number, attempt, length, id = header.rstrip(b"\n").split(b" ", 3)
        message = stream.read(int(length))
        if stream.read(1) != b"\n":
            return  # the daemon has gone in the middle of a message
        yield number.decode(), attempt, id, message


def set_message(attempt, id, message):
    """Gives this process what a handler in mode "exec" has."""
    os.environb.update({b"RQD_ATTEMPT": attempt, b"RQD_ID": id})
    with open(os.memfd_create("message"), "wb") as file:
        file.write(message)
        file.seek(0)
        os.dup2(file.fileno(), 0)


def verdict(status):
    """Returns the answer for an exit status; a negative one is a signal's number."""
    if status == 0:
        return "ok"
    if status == DEAD:
        return f"dead exit status {status}"
    return f"retry killed by signal {-status}" if status < 0 else f"retry exit status {status}"


def main():
    # The pipes to rqd move to other descriptors, which programs do not inherit.  So
    # nothing else can read a message, and what is printed goes to the log.
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    with open(os.devnull) as null:
        os.dup2(null.fileno(), 0)

    sys.argv, modules = sys.argv[1:2], sys.argv[2:]
    sys.path[0] = os.path.dirname(sys.argv[0])
    for name in modules:
        importlib.import_module(name)
    with open(sys.argv[0], "rb") as file:
        script = compile(file.read(), sys.argv[0], "exec")
    gc.freeze()  # or collections in the new processes would copy all this memory

    for number, attempt, id, message in messages(requests):
        pid = os.fork()
        if pid == 0:
            requests.close()
            answers.close()
            set_message(attempt, id, message)
            return script
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if status in (126, 127):
            sys.exit(status)  # a command was not found: rqd suspends the queue
        print(number, verdict(status), file=answers, flush=True)
    sys.exit()


def leave():
    """Ends a process whose script has succeeded without the clean-up of the interpreter,
    which would take longer than all else: it writes to, and so copies, all memory."""
    if done:
        sys.stdout.flush()
        os._exit(0)


done = False
atexit.register(leave)  # the first one is called last
script = main()
# Only new processes come here.  The script has its own name space, and an exception
# ends the process as usual.
module = sys.modules["__main__"] = types.ModuleType("__main__")
module.__file__ = sys.argv[0]
try:
    exec(script, vars(module))
except SystemExit as e:
    if e.code:
        raise
done = True

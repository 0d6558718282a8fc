#!/usr/bin/python3
"""Books amounts into a file: a persistent handler in Python.  A message is a JSON
object with an account and an amount: {"id": 7, "account": "alice", "amount": 12.5}.

    queue "ledger" {
        command     = {"/usr/local/bin/ledger.py"}
        user        = "ledger"
        env         = {"LEDGER=/var/lib/ledger/book"}
        mode        = "persistent"
        concurrency = 2
        pipeline    = 16
    }

Standard output is for answers only: print() elsewhere needs file=sys.stderr, and
programs that are run need stdout=sys.stderr and stdin=subprocess.DEVNULL.
"""

import json
import os
import sys


class Never(Exception):
    """This message can never succeed."""


def book(ledger, id, message):
    try:
        order = json.loads(message)
        account, amount = order["account"], float(order["amount"])
    except (ValueError, KeyError, TypeError) as e:
        raise Never(f"not an order: {e!r}")
    # One write for one line: lines of several processes do not mix.
    ledger.write(f"{id} {account} {amount:.2f}\n".encode())


def messages(stream):
    """Number, attempt, id and text of each message; stream must be binary."""
    for header in stream:
        number, attempt, length, id = header.rstrip(b"\n").split(b" ", 3)
        message = stream.read(int(length))
        stream.read(1)  # the newline behind it
        yield number.decode(), int(attempt), id.decode(errors="replace"), message


def answer(number, verdict, reason=""):
    # A reason is one line.  Without the flush the answer would wait in a buffer.
    print(number, verdict, " ".join(str(reason).split())[:500], flush=True)


def main():
    # Do slow things (imports, connections, models) here, once.
    ledger = open(os.environ["LEDGER"], "ab", buffering=0)
    for number, attempt, id, message in messages(sys.stdin.buffer):
        try:
            book(ledger, id, message)
        except Never as e:
            answer(number, "dead", e)
        except Exception as e:
            answer(number, "retry -", repr(e))
        else:
            answer(number, "ok")


main()

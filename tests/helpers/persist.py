# A persistent handler for tests: python3 persist.py KIND FOLDER
#
# It notes what it begins and what it has done in FOLDER/KIND.begun and .done, as "ID
# ATTEMPT", and misbehaves once, at the message whose id is 7, as KIND says.  A lock for
# each message is held while it is at work: who finds one held writes to FOLDER/overlap.
# $SLOW is how long a message takes, in seconds.
import fcntl, os, re, sys, time
kind, where = sys.argv[1:3]
begun = open(f"{where}/{kind}.begun", "ab", buffering=0)
done = open(f"{where}/{kind}.done", "ab", buffering=0)
have = b""

def say(text):
    os.write(1, text)

def misbehave(n):
    try:
        os.close(os.open(f"{where}/{kind}.once", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    if kind == "garbage": say(b"hello world\n")
    elif kind == "long": say(b"x" * 100000)
    elif kind == "unknown": say(b"4711 ok\n")
    elif kind == "twice": done.write(b"7 1\n"); say(b"%d ok\n%d ok\n" % (n, n))
    elif kind == "stdout": os.close(1); time.sleep(600)
    elif kind == "stdin": os.close(0); time.sleep(600)
    elif kind == "silent": time.sleep(600)
    elif kind == "flood":
        for i in range(20000): os.write(2, b"flood %d\n" % i)
    elif kind == "exit": sys.exit(0)
    elif kind == "status": sys.exit(65)
    elif kind == "segv": os.kill(os.getpid(), 11)

def work(n, id, attempt):
    lock = open(f"{where}/{kind}.lock.{id}", "w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        open(f"{where}/overlap", "a").write(f"{kind} {id}\n")
    begun.write(b"%d %d\n" % (id, attempt))
    if id == 7:
        misbehave(n)
    time.sleep(float(os.environ.get("SLOW", 0)))
    done.write(b"%d %d\n" % (id, attempt))
    say(b"%d ok\n" % n)
    lock.close()

while chunk := os.read(0, 65536):
    have += chunk
    while head := re.match(rb"(\d+) (\d+) (\d+) (.*)\n", have):
        end = head.end() + int(head[3])
        if len(have) <= end:
            break
        have = have[end + 1:]
        work(int(head[1]), int(head[4]), int(head[2]))

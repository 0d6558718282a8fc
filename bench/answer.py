#!/usr/bin/python3
import sys
stdin, write, flush = sys.stdin.buffer, sys.stdout.write, sys.stdout.flush
while line := stdin.readline():
    number, attempt, length, ident = line.split(b" ", 3)
    message = stdin.read(int(length) + 1)
    write(f"{int(number)} ok\n")
    flush()

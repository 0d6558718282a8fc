#!/usr/bin/python3
import sys
sys.stdin.buffer.read()

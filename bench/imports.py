#!/usr/bin/python3
import json
import re
import sqlite3
import sys
sys.stdin.buffer.read()

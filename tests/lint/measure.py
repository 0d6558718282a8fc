#!/usr/bin/env python3
"""Prints how dense and how tangled the sources are, a row each: NAME FIGURE.

    tests/lint/measure.py             the figures of this tree
    tests/lint/measure.py compare     compares them with measure.bounds, and
                                      prints those that are worse
    ... | tests/lint/measure.py compare way_
                                      compares the rows of standard input, which
                                      must have each bound that begins with way_

A commit may lower a figure of measure.bounds, never raise it.  The figures that
begin with way_ need a build of their own; bench/way.py prints them.
"""

import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
BOUNDS = os.path.join(ROOT, 'tests', 'lint', 'measure.bounds')
DENSE = ('src/config', 'src/status', 'src/rqctl')
NOUNS = ('src/handler', 'src/engine', 'src/config')
COLUMNS = 80

# Comments, strings and characters of C.
NO_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"'
                     r"|'(?:\\.|[^'\\\n])*'", re.S)
# The style puts the name of a function at the beginning of its line.
FUNCTION = re.compile(r'^(\w+)\(', re.M)


def sources(*kinds, under=('src',)):
    for top in under:
        for folder, _, names in sorted(os.walk(os.path.join(ROOT, top))):
            for name in sorted(names):
                if name.rsplit('.', 1)[-1] in kinds:
                    yield os.path.join(folder, name)


def text_of(path):
    with open(path, encoding='utf-8') as f:
        return f.read()


def code_of(path):
    """The text without comments and strings; lines stay lines."""
    def blank(match):
        found = match.group(0)
        mark = '""' if found[0] in '"\'' else ' '
        return mark + '\n' * found.count('\n')
    return NO_CODE.sub(blank, text_of(path))


def nested(code):
    """How many ?: stand inside another one's operands."""
    count = 0
    depth = 0
    opened = []             # the depths of the ?: that have not ended
    for c in code:
        if c in '([':
            depth += 1
        elif c in ')]':
            depth -= 1
            while opened and opened[-1] > depth:
                opened.pop()
        elif c == ',':
            while opened and opened[-1] >= depth:
                opened.pop()
        elif c in ';{}':
            opened = []
            depth = 0
        elif c == '?':
            if opened:
                count += 1
            opened.append(depth)
    return count


def functions():
    """(file, name, whether it is static) of each function that src defines."""
    for path in sources('c'):
        code = code_of(path)
        for match in FUNCTION.finditer(code):
            # The end of the parameters, and then a body.
            at, depth = match.end(), 1
            while depth and at < len(code):
                depth += {'(': 1, ')': -1}.get(code[at], 0)
                at += 1
            if not code[at:].lstrip().startswith('{'):
                continue
            before = code[:match.start()].rstrip('\n').rsplit('\n', 1)[-1]
            yield path, match.group(1), before.startswith('static')


def wide_share():
    """Lines over COLUMNS columns, in hundredths of a percent of all."""
    wide = total = 0
    for path in sources('c', 'h', 'lua'):
        for line in text_of(path).splitlines():
            total += 1
            wide += len(line.expandtabs(8)) > COLUMNS
    return round(10000 * wide / total)


def measure():
    code = {path: code_of(path) for path in sources('c', 'h')}
    dense = [path for path in sources('c', 'h', under=DENSE)]
    defined = list(functions())
    names = [name for _, name, _ in defined]
    nouns = [os.path.join(ROOT, folder) for folder in NOUNS]
    makefile = os.path.join(ROOT, 'Makefile.am')
    yield 'nested_conditionals', sum(nested(text) for text in code.values())
    yield 'conditional_lines', sum(
        '?' in line for path in dense for line in code[path].splitlines())
    yield 'wide_lines_of_10000', wide_share()
    yield 'static_functions_of_one_word', sum(
        static and '_' not in name and os.path.dirname(path) in nouns
        for path, name, static in defined)
    yield 'function_names_twice', len(
        {name for name in names if names.count(name) > 1})
    yield 'makefile_lines', len(text_of(makefile).splitlines())
    yield 'makefile_bytes', len(text_of(makefile).encode())


def compare(rows, prefix=''):
    bounds = dict(line.split() for line in text_of(BOUNDS).splitlines()
                  if line and not line.startswith('#'))
    rows = {name: figure for name, figure in rows}
    for name in bounds:
        if name.startswith('way_') == (prefix == 'way_') and name not in rows:
            print(f'{name} is missing')
    for name, figure in rows.items():
        bound = int(bounds[name])
        if int(figure) > bound:
            print(f'{name} is {figure}, the bound is {bound}')


def main(words):
    if words == ['compare', 'way_']:
        compare((line.split() for line in sys.stdin), 'way_')
    elif words == ['compare']:
        compare(measure())
    elif not words:
        for row in measure():
            print(*row)
    else:
        sys.exit(__doc__)


main(sys.argv[1:])

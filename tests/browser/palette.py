"""Makes a screenshot smaller: palette.py FILE.png

Chromium writes 24 bits for each pixel, and the page has few colours.  This keeps the 256 most
frequent colours, and replaces each other one by the nearest of these.
"""
import collections
import struct
import sys
import zlib


def chunks(data):
    at = 8
    while at < len(data):
        size, = struct.unpack('>I', data[at:at + 4])
        yield data[at + 4:at + 8], data[at + 8:at + 8 + size]
        at += size + 12


def chunk(name, data):
    return struct.pack('>I', len(data)) + name + data + struct.pack('>I', zlib.crc32(name + data))


def paeth(a, b, c):
    p = a + b - c
    return min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]


def lines(raw, width, height, size):
    """Yields the lines of the picture, with PNG's filters undone."""
    length, before = width * size, bytes(width * size)
    for y in range(height):
        kind = raw[y * (length + 1)]
        line = bytearray(raw[y * (length + 1) + 1:(y + 1) * (length + 1)])
        for i in range(length if kind else 0):
            a = line[i - size] if i >= size else 0
            c = before[i - size] if i >= size else 0
            add = (0, a, before[i], (a + before[i]) // 2, paeth(a, before[i], c))[kind]
            line[i] = (line[i] + add) & 255
        before = bytes(line)
        yield before


def main(name):
    with open(name, 'rb') as f:
        parts = list(chunks(f.read()))
    width, height, depth, colour, _, _, interlaced = struct.unpack('>IIBBBBB', parts[0][1])
    assert depth == 8 and colour in (2, 6) and not interlaced
    size = 3 if colour == 2 else 4
    raw = zlib.decompress(b''.join(data for kind, data in parts if kind == b'IDAT'))
    rows = [[line[i:i + 3] for i in range(0, len(line), size)] for line in lines(raw, width, height, size)]
    count = collections.Counter(c for row in rows for c in row)
    palette = [c for c, _ in count.most_common(256)]
    place = {c: i for i, c in enumerate(palette)}
    for c in count:
        if c not in place:
            place[c] = min(range(len(palette)), key=lambda i: sum((a - b) ** 2 for a, b in zip(palette[i], c)))
    packed = zlib.compress(b''.join(b'\0' + bytes(place[c] for c in row) for row in rows), 9)
    with open(name, 'wb') as f:
        f.write(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, 8, 3, 0, 0, 0)) +
                chunk(b'PLTE', b''.join(palette)) + chunk(b'IDAT', packed) + chunk(b'IEND', b''))


main(sys.argv[1])

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# referee.py - codecs with blocks of any length against the format that models/update/codec.h writes down, in the doubles of
# Python: sizes by hand, each scale, each error within its bound, decoding to the bit, and sums that are made in the payload.
import math
import random
import struct
import subprocess
import sys

INT8, E3M0, TENSOR = 2, 3, 0xFFFFFFFF
PIPE = sys.argv[1]


def single(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def pipe(codec, block, what, n, data):
    done = subprocess.run([PIPE, str(codec), str(block), what, str(n)], input=data, stdout=subprocess.PIPE, check=True)
    return done.stdout


def floats(data):
    return list(struct.unpack("<%df" % (len(data) // 4), data))


def packed(values):
    return struct.pack("<%df" % len(values), *values)


def blocks(n, block):
    length = max(n, 1) if block == TENSOR else block
    return [range(first, min(first + length, n)) for first in range(0, n, length)]


# By hand: a scale of 4 bytes for each block that has begun, and 8 or 4 bits for each number, in whole bytes of a block.
def bytes_of(codec, n, block):
    return sum(4 + (len(b) if codec == INT8 else (len(b) + 1) // 2) for b in blocks(n, block))


# What the bytes say: (scale, [number for each element]) of each block.
def parsed(codec, n, block, data):
    at = 0
    for b in blocks(n, block):
        scale = struct.unpack_from("<f", data, at)[0]
        at += 4
        if codec == INT8:
            numbers = list(struct.unpack_from("<%db" % len(b), data, at))
            at += len(b)
        else:
            half = (len(b) + 1) // 2
            codes = [data[at + i] & 15 for i in range(half)] + [data[at + i] >> 4 for i in range(len(b) - half)]
            numbers = [0 if c & 7 == 0 else (-1 if c & 8 else 1) * 2.0 ** ((c & 7) - 7) for c in codes]
            at += half
        yield b, scale, numbers
    assert at == len(data), (at, len(data))


def decoded(codec, n, block, data):
    return [single(scale * q) for _, scale, numbers in parsed(codec, n, block, data) for q in numbers]


def check_encoded(codec, n, block, values, data):
    assert len(data) == bytes_of(codec, n, block), (codec, n, block, len(data))
    for b, scale, numbers in parsed(codec, n, block, data):
        most = max(abs(values[i]) for i in b)
        wanted = most / 127 if codec == INT8 else most
        assert abs(scale - wanted) <= 2 ** -23 * wanted, (codec, block, scale, wanted)
        for i, q in zip(b, numbers):
            error = abs(values[i] - scale * q)
            bound = 1.0001 * most / 254 if codec == INT8 else max((1 + 2 ** -20) * abs(values[i]) / 3, most / 128)
            assert error <= bound, (codec, n, block, i, values[i], scale * q)


def some(n, seed):
    draw = random.Random(seed)
    return [single(draw.choice((-1, 1)) * 2.0 ** draw.uniform(-9, 4)) for _ in range(n)]


def check(codec, n, block, seed):
    a, b = some(n, seed), some(n, seed + 1)
    data = pipe(codec, block, "encode", n, packed(a))
    check_encoded(codec, n, block, a, data)
    there = decoded(codec, n, block, data)
    assert floats(pipe(codec, block, "decode", n, data)) == there, (codec, n, block)
    sums = [single(x + y) for x, y in zip(there, b)]
    assert floats(pipe(codec, block, "fold", n, data + packed(b))) == sums, (codec, n, block)
    added = pipe(codec, block, "add", n, data + packed(b))
    again, told = added[:len(data)], floats(added[len(data):])
    check_encoded(codec, n, block, sums, again)
    assert again == pipe(codec, block, "encode", n, packed(sums)), (codec, n, block)
    assert told == decoded(codec, n, block, again), (codec, n, block)
    once_more = pipe(codec, block, "encode", n, packed(told))
    assert decoded(codec, n, block, once_more) == told, (codec, n, block)


def main():
    assert bytes_of(INT8, 1000, 64) == 1000 + 16 * 4 and bytes_of(INT8, 1000, TENSOR) == 1004
    assert bytes_of(E3M0, 1000, 128) == 500 + 8 * 4 and bytes_of(E3M0, 1001, TENSOR) == 505
    assert bytes_of(E3M0, 1001, 8) == 500 + 1 + 126 * 4 and bytes_of(INT8, 0, TENSOR) == 0
    checked = 0
    for codec in (INT8, E3M0):
        for block in (0, 8, 24, 64, 128, 1000, 1024, 1032, 4096, 1 << 20, TENSOR):
            for n in (1, 2, 7, 8, 9, 63, 65, 130, 1023, 1024, 1025, 1033, 2049, 5001):
                check(codec, n, block or 64, 100 * n + codec) if block else check_usual(codec, n)
                checked += 1
    # A value that is no number spoils its block, and no other one.
    for block, spoilt in ((64, 64), (2048, 2048), (TENSOR, 5000)):
        for codec in (INT8, E3M0):
            values = some(5000, 3)
            values[0] = math.inf
            back = floats(pipe(codec, block, "decode", 5000, pipe(codec, block, "encode", 5000, packed(values))))
            assert [math.isnan(x) for x in back] == [i < spoilt for i in range(5000)], (codec, block)
    print("%d encodings" % checked)


# 0, as in a plan that does not say, is 64.
def check_usual(codec, n):
    values = packed(some(n, n))
    assert pipe(codec, 0, "encode", n, values) == pipe(codec, 64, "encode", n, values)


main()

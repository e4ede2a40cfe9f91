#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# frozen.py - which weights of a file are those of another one, to the bit: frozen.py BEFORE AFTER PREFIX... where just the weights that
# begin with one of the prefixes are to be equal, and all others are to differ.
import json
import struct
import sys


def weights(path):
    with open(path, "rb") as file:
        size, = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = file.read()
    found = {}
    for name, at in header.items():
        if name != "__metadata__":
            begin, end = at["data_offsets"]
            found[name.removeprefix("transformer.").removeprefix("model.")] = (at["dtype"], data[begin:end])
    return found


before, after = weights(sys.argv[1]), weights(sys.argv[2])
frozen = tuple(sys.argv[3:])
shared = before.keys() & after.keys()
assert len(shared) > len(frozen), shared
equal = {name for name in shared if before[name] == after[name]}
wanted = {name for name in shared if name.startswith(frozen)} if frozen else set()
assert equal == wanted, (sorted(equal - wanted), sorted(wanted - equal))

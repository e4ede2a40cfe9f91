#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# dealing.py MICROBATCHES MS COUNT [MS COUNT ...] - the shortest time in seconds in which so many equal microbatches can be done by workers
# that take MS milliseconds for one each, COUNT of every kind, exactly: the least time T, a whole number of some worker's times, with
#   sum over workers of floor(T / MS) >= MICROBATCHES
# No schedule is shorter, since floor(T / MS) is the most that a worker can do by T; and the schedule that gives each so many is as long.
import sys

microbatches = int(sys.argv[1])
pairs = list(zip(sys.argv[2::2], sys.argv[3::2]))
times = [int(ms) for ms, count in pairs for _ in range(int(count))]
ends = sorted({k * ms for ms in set(times) for k in range(1, microbatches + 1)})
print(next(end for end in ends if sum(end // ms for ms in times) >= microbatches) / 1000)

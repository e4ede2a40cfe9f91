#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""speed_resnet.py SAMPLES STEPS [channels_last] - processor time of a step of ResNet-20 on random images in PyTorch, on one thread."""
import sys
import time

import torch
import torch.nn.functional as F

from resnet import ResNet


def shapes():
    """Of the tensors that tell ResNet its layers."""
    channels = [16] * 4 + [32] * 3 + [64] * 3
    blocks = {i: {"conv1.weight": (9 * channels[i - 1], channels[i])} for i in range(1, 10)}
    return {0: {"conv1.weight": (27, 16)}, **blocks, 10: {"fc.weight": (64, 10)}}


def main():
    samples, steps = map(int, sys.argv[1:3])
    layout = torch.channels_last if "channels_last" in sys.argv else torch.contiguous_format
    torch.set_num_threads(1)
    model = ResNet(shapes()).to(memory_format=layout)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    x, y = torch.randn(samples, 3, 32, 32).contiguous(memory_format=layout), torch.randint(0, 10, (samples,))
    times = []
    for _ in range(steps):
        begin = time.process_time()
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        times.append(time.process_time() - begin)
    print("%.3f s" % sorted(times)[steps // 2])


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""resnet.py PREFIX - trains in PyTorch what test_resnet_double --write NAME PREFIX has written, and prints the losses; then that of the last
microbatch in eval mode.

Convolutions, batch norms with their running averages, gradients and optimizers are PyTorch's, in double precision. Shortcuts are those
without parameters: each second pixel, and channels of 0 behind those that are there.
"""
import sys

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, into, out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(into, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.stride = stride

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        short = x[:, :, ::self.stride, ::self.stride]
        return F.relu(y + F.pad(short, (0, 0, 0, 0, 0, y.shape[1] - short.shape[1])))


class ResNet(nn.Module):
    def __init__(self, shapes):
        """By the shapes of the tensors, [layer][name] = (rows, columns)."""
        super().__init__()
        last = max(shapes)
        width = shapes[0]["conv1.weight"][1]
        self.conv1, self.bn1 = nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        self.blocks = nn.ModuleList()
        for layer in range(1, last):
            rows, out = shapes[layer]["conv1.weight"]
            self.blocks.append(Block(rows // 9, out, 1 if rows // 9 == out else 2))
        self.fc = nn.Linear(*shapes[last]["fc.weight"])

    def part(self, layer):
        return self if layer in (0, len(self.blocks) + 1) else self.blocks[layer - 1]

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        for block in self.blocks:
            x = block(x)
        return self.fc(x.mean((2, 3)))


def load(model, shapes, raw):
    """Weights are [in][kernel][kernel][out]; running averages of all norms of a layer are behind each other."""
    at = 0
    with torch.no_grad():
        for layer, tensors in shapes.items():
            part = model.part(layer)
            for name, (rows, columns) in tensors.items():
                value = raw[at:at + rows * columns].reshape(rows, columns)
                at += rows * columns
                if name.startswith("running"):
                    norms = [part.bn1] + ([part.bn2] if hasattr(part, "bn2") else [])
                    for norm, piece in zip(norms, value[0].split([n.num_features for n in norms])):
                        getattr(norm, name).copy_(piece)
                elif name.startswith("conv"):
                    target = part.get_parameter(name)
                    target.copy_(value.T.reshape(target.shape))
                elif name == "fc.weight":
                    part.get_parameter(name).copy_(value.T)
                else:
                    part.get_parameter(name).copy_(value[0])
    assert at == len(raw)


def main():
    prefix = sys.argv[1]
    lines = open(prefix + ".txt").read().split("\n")
    samples, side, _ = map(int, lines[0].split())
    shapes = {}
    for line in lines[1:-1]:
        layer, tensor, rows, columns = line.split()
        shapes.setdefault(int(layer), {})[tensor] = (int(rows), int(columns))
    read = lambda end, dtype: torch.frombuffer(bytearray(open(prefix + end, "rb").read()), dtype=dtype)
    images = read(".images", torch.float64).reshape(-1, samples, 3, side, side)
    labels = read(".labels", torch.int32).reshape(-1, samples).long()
    model = ResNet(shapes).double()
    load(model, shapes, read(".parameters", torch.float64))
    optimizer = torch.optim.SGD(model.parameters(), lr=torch.tensor(0.01).item(), momentum=torch.tensor(0.9).item())
    for x, y in zip(images[:-1], labels[:-1]):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("%.10f" % loss.item())
    model.eval()
    print("%.10f" % F.cross_entropy(model(images[-1]), labels[-1]).item())


if __name__ == "__main__":
    main()

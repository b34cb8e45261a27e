"""A small classifier of handwritten digits. It looks right, and parts of it will never train."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.norm = nn.BatchNorm1d(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.relu(self.norm(self.linear(x)))


class Digits(nn.Module):
    def __init__(self, depth: int = 3, width: int = 64) -> None:
        super().__init__()
        self.first = nn.Linear(28 * 28, width)
        self.blocks = [Block(width) for _ in range(depth)]
        self.dropout = nn.Dropout(0.5)
        self.last = nn.Linear(width, 10)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.first(pictures.flatten(1)))
        for block in self.blocks:
            x = block(x)
        return self.last(self.dropout(x))


class Ensemble(nn.Module):
    def __init__(self, members: int = 3) -> None:
        self.members = nn.ModuleList(Digits() for _ in range(members))

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        return torch.stack([member(pictures) for member in self.members]).mean(0)

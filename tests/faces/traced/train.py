import torch
from torch import nn


def evaluate(model, x):
    model.eval()
    with torch.no_grad():
        return model(x).sum()


def add(a, b):
    total = a + b
    return total * 2


net = nn.Sequential(nn.Linear(4, 2), nn.Dropout(0.1))
x = torch.randn(3, 4)
net(x).sum().backward()
evaluate(net, x)

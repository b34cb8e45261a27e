import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        return self.drop(self.body(x))


class Trainer:
    def __init__(self, net):
        self.net = net
        self.optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)  #: OptimizerMade

    def validate(self, x):
        self.net.eval()  #: ModeChange | mode='eval'
        return self.net(x)  #: ModuleCall | mode='eval'

    def fit(self, x, epochs=2):
        for _ in range(epochs):
            self.net.train()
            loss = self.net(x).sum()  #: ModuleCall | mode='train' | mode_dependent=True
            self.optimizer.zero_grad()  #: ZeroGrad | Adam(parameters of Net(...))
            loss.backward()
            self.optimizer.step()  #: OptimizerStep | Adam(parameters of Net(...))
            self.validate(x)


if __name__ == "__main__":
    Trainer(Net()).fit(torch.randn(2, 4))

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)  #: self.body = Linear(in_features=4, out_features=4), train
        self.drop = nn.Dropout(0.1)

    def forward(self, x):  #: self = Net(...), train; self = Net(...), eval
        return self.drop(self.body(x))


class Trainer:
    def __init__(self, net):
        self.net = net
        self.optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)  #: optimizer Adam(parameters of Net(...))

    def validate(self, x):
        self.net.eval()  #: mode of Net(...) becomes eval; modes: grad, self.net train
        return self.net(x)  #: module call of Net(...) in eval mode; modes: grad, self.net eval

    def fit(self, x, epochs=2):
        for _ in range(epochs):
            self.net.train()  #: modes: grad, self.net train; modes: grad, self.net eval
            loss = self.net(x).sum()  #: module call | in train mode, on which its layers depend | !eval mode
            self.optimizer.zero_grad()  #: gradients of Adam(parameters of Net(...)) are cleared
            loss.backward()
            self.optimizer.step()  #: step of Adam(parameters of Net(...))
            self.validate(x)


@torch.no_grad()
def predict(net, x):
    net.eval()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return net(x)  #: modes: no grad, autocast bfloat16, net eval


if __name__ == "__main__":
    Trainer(Net()).fit(torch.randn(2, 4))
    predict(Net(), torch.randn(2, 4))

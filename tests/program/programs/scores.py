import torch
import torch.nn.functional as F
from torch import nn, optim

SIZES = {"hidden": 16}


def make(hidden, classes=3):
    layers = [nn.Linear(8, hidden), nn.ReLU()]
    layers.append(nn.Linear(hidden, classes))
    return nn.Sequential(*layers)


class Wrapped(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        logits = self.net(x)
        return logits, F.log_softmax(logits, dim=-1)


net = Wrapped(make(SIZES["hidden"]))
params = net.parameters()
opt = optim.SGD(params, lr=0.1)  #: SGD takes parameters of Wrapped(...)
nn.utils.clip_grad_norm_(params, 1.0)  #: they were used up at line 26
logits, logp = net(torch.randn(2, 8))  #: logits = Tensor[ | logits | !log_prob; logp = Tensor[ | log_probabilities
loss = nn.NLLLoss()(logp, torch.tensor([0, 1]))  #: > loss torch.nn.NLLLoss
loss.backward()
state = net.state_dict()  #: state = state_dict of Wrapped(...)

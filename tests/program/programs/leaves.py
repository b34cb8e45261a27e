import torch
from torch import nn

w = torch.zeros(3, requires_grad=True)
w += 1  #: InPlaceChange | leaf=True | requires_grad=True | !view=True
w[0] = 2  #: InPlaceChange | how='index'
v = nn.Parameter(torch.zeros(2, 2))
v[:, 1] = 3  #: InPlaceChange | leaf=True | view=True
v2 = nn.Parameter(torch.zeros(2, 2))
v2[v2 > 0] = 0  #: InPlaceChange | leaf=True | !view=True
with torch.no_grad():
    v2.zero_()  #: InPlaceChange | [no grad]
v2.data.fill_(1)  #: InPlaceChange | through_data=True
moved = torch.randn(4, requires_grad=True) * 0.1
moved.grad  #: GradRead
layer = nn.Linear(2, 2)
layer.weight.clamp_(0)  #: InPlaceChange | leaf=True
for p in layer.parameters():
    p.requires_grad_(False)
layer.bias.fill_(0)  #: InPlaceChange | !requires_grad=True

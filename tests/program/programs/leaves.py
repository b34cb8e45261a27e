import torch
from torch import nn

w = torch.zeros(3, requires_grad=True)  #: w = Tensor[factory, 3, float32, leaf, grad]
w += 1  #: in-place change | of a leaf that requires grad | !of a view | !, view
w[0] = 2  #: in-place change | index
v = nn.Parameter(torch.zeros(2, 2))  #: v = Tensor[parameter, 2x2, float32, leaf, grad]
part = v[0]  #: part = Tensor[ | view]
v[:, 1] = 3  #: in-place change | of a view | of a leaf
v2 = nn.Parameter(torch.zeros(2, 2))
v2[v2 > 0] = 0  #: in-place change | of a leaf | !view
with torch.no_grad():
    v2.zero_()  #: in-place change; modes: no grad
v2.data.fill_(1)  #: in-place change | through .data
moved = torch.randn(4, requires_grad=True) * 0.1  #: moved = Tensor[ | no leaf, grad, graph]
moved.grad  #: .grad is read | which is no leaf
layer = nn.Linear(2, 2)  #: layer = Linear(in_features=2, out_features=2), train
layer.weight.clamp_(0)  #: in-place change of Tensor[parameter | of a leaf
for p in layer.parameters():
    p.requires_grad_(False)
layer.bias.fill_(0)  #: in-place change | !that requires grad

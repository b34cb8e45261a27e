import torch
from torch import nn
import torch.nn.functional as F

model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
x, y = torch.randn(3, 4), torch.randint(0, 2, (3,))  #: x = Tensor[factory, 3x4, float32, leaf, no grad]; y = | int64
out = model(x)  #: modes: grad, model train; module call of Sequential(...) in train mode; out = Tensor[output | no leaf, grad, graph]
loss = F.cross_entropy(out, y)  #: loss = Tensor[loss, scalar | grad, graph]; > loss torch.nn.functional.cross_entropy
loss.backward()  #: backward | it has a graph | !freed by
again = F.cross_entropy(out, y)
again.backward()  #: backward | freed by the backward at line 9
cut = out.detach()  #: cut = Tensor[output | no grad, view] | !graph
mean = cut.mean()
mean.backward()  #: backward | it has no graph
kept = model(x).sum()
kept.backward(retain_graph=True)  #: backward | the graph is kept | !no graph
kept.backward()  #: backward | it has a graph | !freed by
with torch.no_grad():
    silent = model(x).sum()  #: modes: no grad, model train; silent = Tensor[ | no grad] | !graph
with torch.inference_mode():
    frozen = x * 2  #: modes: inference; frozen = Tensor[ | made in inference mode
picked = model(x).argmax(1)  #: picked = Tensor[torch.Tensor.argmax, int64 | no grad
gate = torch.sigmoid(model(x))  #: gate = Tensor[torch.sigmoid, sigmoid, no leaf, grad, graph]
gate.mul_(2)  #: in-place change | method
gate.sum().backward()  #: backward | was changed at line 24 and is needed
half = x.half().to("cuda")  #: half = Tensor[ | float16, cuda

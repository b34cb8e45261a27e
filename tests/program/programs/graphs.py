import torch
from torch import nn
import torch.nn.functional as F

model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
x, y = torch.randn(3, 4), torch.randint(0, 2, (3,))
out = model(x)  #: ModuleCall | mode='train' | result=Tensor[output grad]
loss = F.cross_entropy(out, y)  #: LossCall | result=Tensor[loss scalar grad]
loss.backward()  #: Backward | has_graph=True
again = F.cross_entropy(out, y)
again.backward()  #: Backward | freed=<Backward line 9>
cut = out.detach()  #: result=Tensor[output no grad]
mean = cut.mean()
mean.backward()  #: Backward | !has_graph=True
with torch.no_grad():
    silent = model(x).sum()  #: result=Tensor[output no grad] | [no grad]
picked = model(x).argmax(1)  #: result=Tensor[torch.Tensor.argmax int64 no grad]
gate = torch.sigmoid(model(x))
gate.mul_(2)  #: InPlaceChange | how='method'
gate.sum().backward()  #: Backward | changed=[

"""Trains the classifier of model.py. Every part of it runs; together they don't do what they seem to."""

import torch
from model import Digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

pictures, digits = torch.rand(512, 1, 28, 28), torch.randint(10, (512,))
train_loader = DataLoader(TensorDataset(pictures, digits), batch_size=32, shuffle=True, num_workers=2)
test_loader = DataLoader(TensorDataset(pictures, digits), batch_size=64)

model = Digits()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for epoch in range(3):
    model.train()
    for batch, labels in train_loader:
        loss = criterion(model(batch), labels)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.3f}")

correct = 0
with torch.no_grad():
    for batch, labels in test_loader:
        correct += (model(batch).argmax(1) == labels).sum().item()
print(f"accuracy {correct / len(digits):.1%}")

torch.save(model, "digits.pt")

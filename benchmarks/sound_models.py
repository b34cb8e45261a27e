"""Thirty sound models, from a perceptron to a U-Net and a GPT, for the probe's benchmarks.

No fault is known in any of them. Trailing comments mark where ``probe_seeded_faults.py`` plants one: ``# features`` and
``# channels`` on the number a later layer takes, ``# list`` on a ModuleList, ``# buffer`` on a buffer, ``# plant`` on a
line of forward after which ``x`` is a float tensor with the batch first that the output hangs on.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(20, 64)
        self.out = nn.Linear(64, 3)  # features

    def forward(self, x):
        x = F.relu(self.hidden(x))  # plant
        return self.out(x)


class DeepPerceptron(nn.Module):
    def __init__(self, width=48, depth=4):
        super().__init__()
        self.first = nn.Linear(12, width)
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])  # list
        self.out = nn.Linear(48, 5)  # features

    def forward(self, x):
        x = F.gelu(self.first(x))  # plant
        for layer in self.layers:
            x = x + F.gelu(layer(x))
        return self.out(x)


class LeNet(nn.Module):
    def __init__(self, num_classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)  # channels
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)  # features
        self.fc3 = nn.Linear(84, num_classes)

    def forward(self, x):
        x = F.max_pool2d(torch.tanh(self.conv1(x)), 2)
        x = F.max_pool2d(torch.tanh(self.conv2(x)), 2)
        x = x.flatten(1)
        x = F.relu(self.fc1(x))  # plant
        x = F.relu(self.fc2(x))
        return self.fc3(x)


class AlexLike(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),  # channels
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(4),
        )
        self.classifier = nn.Sequential(
            nn.Dropout(0.2),
            nn.Linear(32 * 4 * 4, 64),  # features
            nn.ReLU(),
            nn.Linear(64, 10),
        )

    def forward(self, x):
        x = self.features(x)  # plant
        return self.classifier(x.flatten(1))


class BasicBlock(nn.Module):
    def __init__(self, inside, outside, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        self.shortcut = nn.Identity()
        if stride != 1 or inside != outside:
            self.shortcut = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return F.relu(y + self.shortcut(x))


class SmallResNet(nn.Module):
    def __init__(self, num_classes=10):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.norm = nn.BatchNorm2d(16)  # channels
        self.stages = nn.ModuleList([BasicBlock(16, 16), BasicBlock(16, 32, 2), BasicBlock(32, 64, 2)])  # list
        self.fc = nn.Linear(64, num_classes)  # features

    def forward(self, x):
        x = F.relu(self.norm(self.stem(x)))
        for stage in self.stages:
            x = stage(x)
        x = x.mean((2, 3))  # plant
        return self.fc(x)


class VggLike(nn.Module):
    def __init__(self):
        super().__init__()
        layers = []
        channels = 3
        for width in (16, 32):
            layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2)]
            channels = width
        self.body = nn.Sequential(*layers)
        self.neck = nn.Conv2d(32, 32, 3, padding=1)  # channels
        self.head = nn.Linear(32, 7)  # features

    def forward(self, x):
        x = self.body(x)
        x = F.relu(self.neck(x))  # plant
        return self.head(x.amax((2, 3)))


class SqueezeExcite(nn.Module):
    def __init__(self, channels, reduction=4):
        super().__init__()
        self.down = nn.Linear(channels, channels // reduction)
        self.up = nn.Linear(channels // reduction, channels)

    def forward(self, x):
        weights = torch.sigmoid(self.up(F.relu(self.down(x.mean((2, 3))))))
        return x * weights[:, :, None, None]


class MobileLike(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 24, 3, 2, 1)
        self.depthwise = nn.Conv2d(24, 24, 3, 1, 1, groups=24)
        self.pointwise = nn.Conv2d(24, 48, 1)  # channels
        self.excite = SqueezeExcite(48)
        self.norm = nn.GroupNorm(4, 48)
        self.head = nn.Linear(48, 10)  # features

    def forward(self, x):
        x = F.silu(self.stem(x))
        x = F.silu(self.depthwise(x))
        x = self.norm(self.pointwise(x))  # plant
        x = self.excite(x)
        return self.head(x.mean((2, 3)))


class DoubleConv(nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        self.block = nn.Sequential(
            nn.Conv2d(inside, outside, 3, padding=1),
            nn.BatchNorm2d(outside),
            nn.ReLU(),
            nn.Conv2d(outside, outside, 3, padding=1),
            nn.BatchNorm2d(outside),
            nn.ReLU(),
        )

    def forward(self, x):
        return self.block(x)


class UNet(nn.Module):
    def __init__(self, in_channels=3, num_classes=2):
        super().__init__()
        self.down1 = DoubleConv(in_channels, 16)
        self.down2 = DoubleConv(16, 32)
        self.middle = DoubleConv(32, 64)
        self.up2 = nn.ConvTranspose2d(64, 32, 2, 2)
        self.dec2 = DoubleConv(64, 32)
        self.up1 = nn.ConvTranspose2d(32, 16, 2, 2)  # channels
        self.dec1 = DoubleConv(32, 16)
        self.out = nn.Conv2d(16, num_classes, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        x = self.middle(F.max_pool2d(b, 2))
        x = self.dec2(torch.cat([self.up2(x), b], 1))  # plant
        x = self.dec1(torch.cat([self.up1(x), a], 1))
        return self.out(x)


class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 32))
        self.decoder = nn.Sequential(
            nn.Linear(32, 128),  # features
            nn.ReLU(),
            nn.Linear(128, 784),
            nn.Sigmoid(),
        )

    def forward(self, x):
        x = self.encoder(x.flatten(1))  # plant
        return self.decoder(x)


class VariationalAutoEncoder(nn.Module):
    def __init__(self, latent=8):
        super().__init__()
        self.encoder = nn.Linear(64, 48)
        self.mean = nn.Linear(48, latent)
        self.logvar = nn.Linear(48, latent)
        self.decoder = nn.Linear(latent, 48)
        self.out = nn.Linear(48, 64)  # features

    def forward(self, x):
        x = F.relu(self.encoder(x))  # plant
        mean, logvar = self.mean(x), self.logvar(x)
        z = mean
        if self.training:
            z = mean + torch.randn_like(mean) * torch.exp(0.5 * logvar)
        return self.out(F.relu(self.decoder(z))), mean, logvar


class Generator(nn.Module):
    def __init__(self, latent=32):
        super().__init__()
        self.project = nn.Linear(latent, 64 * 4 * 4)
        self.up1 = nn.ConvTranspose2d(64, 32, 4, 2, 1)
        self.norm = nn.BatchNorm2d(32)  # channels
        self.up2 = nn.ConvTranspose2d(32, 3, 4, 2, 1)

    def forward(self, x):
        x = self.project(x).view(x.size(0), 64, 4, 4)
        x = F.relu(self.norm(self.up1(x)))  # plant
        return torch.tanh(self.up2(x))


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 4, 2, 1)
        self.conv2 = nn.Conv2d(16, 32, 4, 2, 1)  # channels
        self.out = nn.Linear(32, 1)  # features

    def forward(self, x):
        x = F.leaky_relu(self.conv1(x), 0.2)
        x = F.leaky_relu(self.conv2(x), 0.2)
        x = x.mean((2, 3))  # plant
        return self.out(x)


class TextCnn(nn.Module):
    def __init__(self, vocab_size=200, embed_dim=32):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embed_dim)
        self.convs = nn.ModuleList([nn.Conv1d(embed_dim, 24, k, padding=k // 2) for k in (3, 5)])  # list
        self.out = nn.Linear(48, 4)  # features

    def forward(self, tokens):
        x = self.embedding(tokens).transpose(1, 2)  # plant
        pooled = [F.relu(conv(x)).amax(2) for conv in self.convs]
        return self.out(torch.cat(pooled, 1))


class LstmTagger(nn.Module):
    def __init__(self, vocab_size=100, tags=9):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, 24)
        self.lstm = nn.LSTM(24, 32, batch_first=True, bidirectional=True)
        self.out = nn.Linear(64, tags)  # features

    def forward(self, tokens):
        x, _ = self.lstm(self.embedding(tokens))  # plant
        return self.out(x)


class GruForecaster(nn.Module):
    def __init__(self, features=6, horizon=3):
        super().__init__()
        self.norm = nn.LayerNorm(features)
        self.gru = nn.GRU(features, 40, num_layers=2, batch_first=True)
        self.out = nn.Linear(40, horizon)  # features

    def forward(self, x):
        h = torch.zeros(2, x.size(0), 40, device=x.device, dtype=x.dtype)
        x, _ = self.gru(self.norm(x), h)
        x = x[:, -1]  # plant
        return self.out(x)


class AttentionPooling(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(150, 32)
        self.score = nn.Linear(32, 1)
        self.out = nn.Linear(32, 6)  # features
        self.register_buffer("scale", torch.full((32,), 0.5))  # buffer

    def forward(self, tokens):
        x = self.embedding(tokens) * self.scale  # plant
        weights = self.score(x).softmax(1)
        return self.out((weights * x).sum(1))


class Gpt(nn.Module):
    def __init__(self, vocab_size=65, block_size=32, width=32, heads=4, depth=2):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, width)
        self.positions = nn.Embedding(block_size, width)
        self.blocks = nn.ModuleList([GptBlock(width, heads, block_size) for _ in range(depth)])  # list
        self.norm = nn.LayerNorm(32)  # features
        self.head = nn.Linear(width, vocab_size, bias=False)

    def forward(self, idx):
        x = self.tokens(idx) + self.positions(torch.arange(idx.size(1), device=idx.device))  # plant
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class GptBlock(nn.Module):
    def __init__(self, width, heads, block_size):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.register_buffer("mask", torch.tril(torch.ones(block_size, block_size)).bool(), persistent=False)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (
            part.view(b, t, self.heads, c // self.heads).transpose(1, 2)
            for part in self.qkv(self.norm1(x)).chunk(3, -1)
        )
        scores = q @ k.transpose(-2, -1) / math.sqrt(c // self.heads)
        scores = scores.masked_fill(~self.mask[:t, :t], float("-inf"))
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c)
        x = x + self.project(y)
        return x + self.mlp(self.norm2(x))


class TransformerClassifier(nn.Module):
    def __init__(self, vocab_size=120, max_len=64):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.register_buffer("table", torch.randn(max_len, 32) * 0.1)  # buffer
        self.out = nn.Linear(32, 2)  # features

    def forward(self, tokens):
        x = self.embedding(tokens) + self.table[: tokens.size(1)]  # plant
        return self.out(self.encoder(x).mean(1))


class Seq2Seq(nn.Module):
    def __init__(self, source_size=80, target_size=90):
        super().__init__()
        self.source = nn.Embedding(source_size, 32)
        self.target = nn.Embedding(target_size, 32)
        self.core = nn.Transformer(32, 4, 1, 1, 64, batch_first=True)
        self.out = nn.Linear(32, target_size)  # features

    def forward(self, src, tgt):
        x = self.source(src)  # plant
        length = tgt.size(1)
        mask = torch.triu(torch.ones(length, length, dtype=torch.bool, device=tgt.device), 1)
        return self.out(self.core(x, self.target(tgt), tgt_mask=mask))


class VisionTransformer(nn.Module):
    def __init__(self, image_size=32, patch_size=8, width=48, depth=2, num_classes=10):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch_size, patch_size)
        self.cls = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.positions = nn.Parameter(torch.randn(1, (image_size // patch_size) ** 2 + 1, width) * 0.02)
        layer = nn.TransformerEncoderLayer
        self.blocks = nn.ModuleList([layer(width, 4, 96, batch_first=True) for _ in range(depth)])  # list
        self.head = nn.Linear(48, num_classes)  # features

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)  # plant
        x = torch.cat([self.cls.expand(x.size(0), -1, -1), x], 1) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(x[:, 0])


class MlpMixer(nn.Module):
    def __init__(self, patches=16, width=32):
        super().__init__()
        self.embed = nn.Conv2d(3, width, 8, 8)
        self.norm1 = nn.LayerNorm(width)
        self.tokens = nn.Sequential(nn.Linear(patches, 32), nn.GELU(), nn.Linear(32, patches))
        self.norm2 = nn.LayerNorm(32)  # features
        self.channels = nn.Sequential(nn.Linear(width, 64), nn.GELU(), nn.Linear(64, width))
        self.out = nn.Linear(width, 5)

    def forward(self, x):
        x = self.embed(x).flatten(2).transpose(1, 2)  # plant
        x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        x = x + self.channels(self.norm2(x))
        return self.out(x.mean(1))


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 12, 3, 2, 1)
        self.embed = nn.Linear(12, 16)  # features

    def encode(self, x):
        x = F.relu(self.conv(x)).mean((2, 3))  # plant
        return F.normalize(self.embed(x), dim=1, eps=1e-6)

    def forward(self, left, right):
        return (self.encode(left) * self.encode(right)).sum(1)


class TwoTower(nn.Module):
    def __init__(self, users=300, items=500):
        super().__init__()
        self.user = nn.Embedding(users, 24)
        self.item = nn.Embedding(items, 24)
        self.mix = nn.Linear(48, 16)  # features
        self.out = nn.Linear(16, 1)

    def forward(self, user_ids, item_ids):
        x = torch.cat([self.user(user_ids), self.item(item_ids)], -1)  # plant
        return self.out(F.relu(self.mix(x)))


class PolicyNetwork(nn.Module):
    def __init__(self, observations=8, actions=4):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(observations, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh())
        self.policy = nn.Linear(32, actions)  # features
        self.value = nn.Linear(32, 1)

    def forward(self, x):
        x = self.body(x)  # plant
        return self.policy(x).log_softmax(-1), self.value(x)


class PointNet(nn.Module):
    def __init__(self, num_classes=8):
        super().__init__()
        self.conv1 = nn.Conv1d(3, 32, 1)
        self.conv2 = nn.Conv1d(32, 64, 1)  # channels
        self.out = nn.Linear(64, num_classes)  # features

    def forward(self, x):
        x = F.relu(self.conv1(x))  # plant
        x = F.relu(self.conv2(x))
        return self.out(x.amax(2))


class Conv3dNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv3d(1, 8, 3, 2, 1)
        self.conv2 = nn.Conv3d(8, 16, 3, 2, 1)  # channels
        self.out = nn.Linear(16, 2)  # features

    def forward(self, x):
        x = F.relu(self.conv1(x))  # plant
        x = F.relu(self.conv2(x))
        return self.out(x.mean((2, 3, 4)))


class WaveNetLike(nn.Module):
    def __init__(self, channels=16):
        super().__init__()
        self.first = nn.Conv1d(1, channels, 1)
        wide = 2 * channels
        self.layers = nn.ModuleList([nn.Conv1d(channels, wide, 3, 1, 2**i, 2**i) for i in range(3)])  # list
        self.out = nn.Conv1d(16, 1, 1)  # channels

    def forward(self, x):
        x = self.first(x)  # plant
        for layer in self.layers:
            a, b = layer(x).chunk(2, 1)
            x = x + torch.tanh(a) * torch.sigmoid(b)
        return self.out(x)


class DiffusionMlp(nn.Module):
    def __init__(self, dim=10):
        super().__init__()
        self.register_buffer("frequencies", torch.exp(torch.linspace(0, 3, 8)))  # buffer
        self.time = nn.Linear(16, 32)
        self.first = nn.Linear(dim, 32)
        self.out = nn.Linear(32, dim)  # features

    def forward(self, x, t):
        angles = t[:, None].to(x.dtype) * self.frequencies
        embedded = self.time(torch.cat([angles.sin(), angles.cos()], -1))
        x = F.silu(self.first(x) + embedded)  # plant
        return self.out(x)


class GatedMixture(nn.Module):
    def __init__(self, width=24, experts=3):
        super().__init__()
        self.gate = nn.Linear(width, experts)
        self.experts = nn.ModuleList([nn.Linear(width, width) for _ in range(experts)])  # list
        self.out = nn.Linear(24, 2)  # features

    def forward(self, x):
        weights = self.gate(x).softmax(-1)
        x = sum(weights[:, i : i + 1] * expert(x) for i, expert in enumerate(self.experts))  # plant
        return self.out(x)


class DenseNetLike(nn.Module):
    def __init__(self, growth=8, layers=3):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1)
        self.layers = nn.ModuleList([nn.Conv2d(16 + i * growth, growth, 3, padding=1) for i in range(layers)])  # list
        self.reduce = nn.Conv2d(40, 20, 1)  # channels
        self.out = nn.Linear(20, 4)  # features

    def forward(self, x):
        x = self.stem(x)  # plant
        for layer in self.layers:
            x = torch.cat([x, F.relu(layer(x))], 1)
        return self.out(F.relu(self.reduce(x)).mean((2, 3)))


MODELS = [
    Perceptron,
    DeepPerceptron,
    LeNet,
    AlexLike,
    SmallResNet,
    VggLike,
    MobileLike,
    UNet,
    AutoEncoder,
    VariationalAutoEncoder,
    Generator,
    Discriminator,
    TextCnn,
    LstmTagger,
    GruForecaster,
    AttentionPooling,
    Gpt,
    TransformerClassifier,
    Seq2Seq,
    VisionTransformer,
    MlpMixer,
    Siamese,
    TwoTower,
    PolicyNetwork,
    PointNet,
    Conv3dNet,
    WaveNetLike,
    DiffusionMlp,
    GatedMixture,
    DenseNetLike,
]

"""Every kind of statement, expression and pattern of Python 3.10 to 3.14, in programs that use torch.

A spelling that the running Python can't parse is left out, so that each version has all of its own.
"""

from __future__ import annotations

import ast
import textwrap
import warnings
from collections.abc import Iterator

EXPRESSIONS = (
    "x",
    "None",
    "...",
    "True",
    "-1",
    "10**5000",
    "1e999",
    "3.5j",
    "'text'",
    "b'bytes'",
    "'a' 'b' f'{x}' '\\N{BULLET}'",
    "f'{x!r:>{width}} {x.shape=} {{}}'",
    "f'{f\"{x}\"}'",
    "t'{x!r:>{width}} {{}}'",
    "x and y or not z",
    "(y := model(x))",
    "x + y - z * x / y // z % x ** y @ z",
    "x << y >> z | x & y ^ z",
    "+x, -x, ~x, not x",
    "lambda: x",
    "lambda a, /, b=1, *c, d, e=model(x), **f: (a, b, c, d, e, f)",
    "x if y else z",
    "{'a': x, **y, 1: {}}",
    "{x, *y}",
    "[a for a in x if a if not a for b in a]",
    "{a async for a in x}",
    "{a: b for a, *b in x}",
    "(a for a in (b for b in x))",
    "[[model(b) for b in a] for a in loader]",
    "await x",
    "(yield)",
    "(yield x)",
    "(yield from x)",
    "x < y <= z > x >= y == z != x is y is not z in x not in y",
    "model(x, *y, width=1, **z)",
    "model(*x, *y, **x, **y)",
    "model(a for a in x)",
    "model()()()(x)[0](x).y.z()",
    "x.y.z.__class__.__mro__",
    "x[0], x[-1], x[...], x[None]",
    "x[1:2, ::3, :, *y, ..., None]",
    "x[:][::][a:b:c]",
    "x[model(x)](y)",
    "[x, *y, *[z]]",
    "(x, *y)",
    "()",
    "[]",
    "{}",
    "nn.Linear(2, 3)(x)",
    "nn.Sequential(nn.Linear(2, 3), *[nn.ReLU() for _ in range(2)], nn.Linear(*x, **y))",
    "nn.Sequential(*nn.Sequential(*[*nn.Sequential()]))",
    "nn.ModuleList([nn.Linear(i, i + 1) for i in range(3)])[0]",
    "nn.ModuleDict({'a': nn.Linear(1, 1), **x})['a'](y)",
    "nn.Linear",
    "torch",
    "torch.nn.functional.cross_entropy(torch.softmax(x, dim=-1), y)",
    "torch.zeros(2, 3, requires_grad=True).add_(1).view(-1, 0).to('cuda').numpy()",
    "torch.zeros(*x, **y)",
    "torch.optim.SGD(model.parameters(), lr=0.1).step().zero_grad()",
    "super().__init__()",
    "super().__init__().forward(x)",
    "type(model)(x)",
    "getattr(model, 'weight').data.copy_(x)",
    "self.weight.data[0].detach_()",
    "isinstance(x, torch.Tensor) and x.requires_grad_().backward(retain_graph=True)",
    "(lambda f: f(f))(lambda f: f(f))",
)

STATEMENTS = (
    "EXPR",
    "v = EXPR",
    "v = w = EXPR",
    "v, *w = EXPR",
    "[v, (w, *u)] = EXPR",
    "v: EXPR",
    "v: EXPR = EXPR",
    "self.v: nn.Module = EXPR",
    "self.v = EXPR",
    "self.v.w[0].u = EXPR",
    "self.v, self.w = EXPR",
    "v[EXPR] = EXPR",
    "v += EXPR",
    "v -= EXPR; v *= EXPR; v /= EXPR; v //= EXPR; v %= EXPR; v **= EXPR; v @= EXPR",
    "v <<= EXPR; v >>= EXPR; v |= EXPR; v &= EXPR; v ^= EXPR",
    "self.v += EXPR",
    "self.v[0] @= EXPR",
    "del v, w[EXPR], self.u, (t, [s])",
    "assert EXPR, EXPR",
    "pass",
    "global g",
    "import torch.nn.functional as F, os.path, torch",
    "from torch import nn as nn, optim",
    "from . import here",
    "from ..up import *",
    "from torch.nn.functional import *",
    "if EXPR:\n    v = EXPR\nelif EXPR:\n    pass\nelse:\n    v = EXPR",
    "for v in EXPR:\n    if v:\n        continue\n    break\nelse:\n    v = EXPR",
    "for v, self.w in EXPR:\n    loss = model(v)\n    loss.backward()\n    optimizer.step()",
    "for v[0] in EXPR: v = EXPR",
    "async for v in EXPR:\n    v = EXPR\nelse:\n    pass",
    "while EXPR:\n    v = EXPR\n    break\nelse:\n    pass",
    "while True:\n    try:\n        continue\n    finally:\n        break",
    "with EXPR:\n    v = EXPR",
    "with EXPR as v, EXPR as (w, u), EXPR as self.t:\n    v = EXPR",
    "async with EXPR as v:\n    v = EXPR",
    "with torch.no_grad(), torch.autocast('cuda'), torch.inference_mode(EXPR):\n    v = EXPR",
    "try:\n    v = EXPR\nexcept (TypeError, ValueError) as error:\n    raise EXPR from error\nexcept EXPR:\n    raise\n"
    "except:\n    return\nelse:\n    v = EXPR\nfinally:\n    v = EXPR",
    "try:\n    v = EXPR\nexcept* ValueError as group:\n    v = EXPR\nfinally:\n    pass",
    "try:\n    v = EXPR\nexcept TypeError, ValueError:\n    v = EXPR",
    "try:\n    return EXPR\nfinally:\n    return EXPR",
    "return EXPR",
    "raise EXPR",
    "raise EXPR from None",
    "def f(a, b: EXPR = EXPR, /, c=EXPR, *d: EXPR, e, f=EXPR, **g: EXPR) -> EXPR:\n    nonlocal v\n    return EXPR",
    "@EXPR\n@torch.no_grad()\ndef f(): return f()",
    "async def f():\n    return [await a async for a in EXPR]",
    "def f():\n    yield EXPR\n    v = yield EXPR\n    yield from EXPR\n    return f",
    "def f[T: (int, str), *Ts, **P](a: T, *b: *Ts) -> EXPR:\n    return EXPR",
    "def f[T = int, *Ts = *tuple[int], **P = [int]](a: T): return EXPR",
    "@EXPR\nclass C(EXPR, metaclass=EXPR, **w):\n    v = EXPR\n"
    "    def forward(self, v=EXPR): return self.forward(EXPR)",
    "class C[T](nn.Module):\n    v: T = EXPR\n    def __init__(self): self.v = EXPR",
    "class C(nn.Module):\n    class D(nn.Module):\n        def __init__(self):\n            super(C, self).__init__()\n"
    "            self.d = D(EXPR)\n    forward = D.forward\n    v = EXPR",
    "class C(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, v, *w):\n"
    "        ctx.save_for_backward(v, *w)\n        return EXPR\n    @staticmethod\n    def backward(ctx, *g):\n"
    "        v, *w = ctx.saved_tensors\n        return EXPR",
    "type V[T] = EXPR",
    "match EXPR:\n    case PATTERN if EXPR:\n        v = EXPR\n    case _:\n        return EXPR",
)

PATTERNS = (
    "1 | -1.5 | 2+3j",
    "'a' | b'b' | None | True",
    "name",
    "_",
    "torch.float32",
    "[a, b, *rest]",
    "(a, *_)",
    "[[], [[]]]",
    "{'a': 1, torch.x: inner, **rest}",
    "{}",
    "nn.Linear()",
    "nn.Linear(1, (2 | 3) as size, bias=True)",
    "C(x=C(x=C()))",
    "[C(a) | C(b=a), *_] as whole",
)

CONTEXTS = {
    "module": "HERE",
    "function": "def run(x, y, z, model, loader, optimizer, self):\n    HERE",
    "coroutine": "async def run(x, y, z, model, loader, optimizer, self):\n    HERE",
    "class": "class Net(nn.Module):\n    HERE",
    "init": "class Net(nn.Module):\n    def __init__(self, x, y, z):\n        super().__init__()\n        HERE",
    "forward": "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.v = nn.Linear(2, 2)\n        self.w = nn.BatchNorm1d(2)\n"
    "        self.weight = nn.Parameter(torch.ones(2))\n\n"
    "    def forward(self, x, y=None):\n        z = model = self.v\n        HERE\n        return x",
    "training": "model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5), nn.Softmax(dim=1))\n"
    "optimizer = torch.optim.Adam(model.parameters())\ncriterion = nn.CrossEntropyLoss()\n"
    "for epoch in range(3):\n    for x, y in loader:\n        z = criterion(model(x), y)\n        HERE\n"
    "        z.backward()\n        optimizer.step()",
    "gradient off": "x = torch.ones(2, requires_grad=True)\ny = z = x * 2\nwith torch.no_grad():\n    HERE\n"
    "z.sum().backward()",
}

HEAD = "import torch\nfrom torch import nn\n\nwidth = 3\n\n"


def parses(text: str) -> bool:
    """Whether the running Python can parse a text."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def expressions() -> list[str]:
    """The expressions that the running Python knows."""
    return [text for text in EXPRESSIONS if parses(f"({text})")]


def statements(expression: str, pattern: str = "_") -> Iterator[str]:
    """Every statement that the running Python knows, with an expression in each of its places."""
    for template in STATEMENTS:
        text = template.replace("EXPR", f"({expression})").replace("PATTERN", pattern)
        if parses(text):
            yield text


def programs() -> Iterator[tuple[str, str]]:
    """Names and texts: each expression in all places of all statements, everywhere that a program has statements."""
    for name, context in CONTEXTS.items():
        for number, expression in enumerate(expressions()):
            pattern = PATTERNS[number % len(PATTERNS)]
            # What ends a block makes the rest of it dead code: each such statement is an arm of its own.
            arms = "\n".join(
                f"if x[{at}]:\n{textwrap.indent(text, '    ')}"
                for at, text in enumerate(statements(expression, pattern))
            )
            yield f"{name}: {expression}", HEAD + filled(context, arms) + "\n"
        for pattern in PATTERNS:
            text = f"match model(x):\n    case {pattern}:\n        v = model(x)\n"
            yield f"{name}: case {pattern}", HEAD + filled(context, text) + "\n"


def filled(context: str, text: str) -> str:
    """A context with statements in its place, at that place's indentation."""
    line = next(line for line in context.splitlines() if line.strip() == "HERE")
    return context.replace(line, textwrap.indent(text, line[: -len("HERE")]))

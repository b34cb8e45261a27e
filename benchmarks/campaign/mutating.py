"""Programs made from programs: statements deleted, doubled, swapped, moved and nested, expressions exchanged, names
and constants made odd, and the text itself damaged.

What comes out is a function of the random generator alone, so that a seed and a number name an input.
"""

from __future__ import annotations

import ast
import copy
import random
import warnings
from collections.abc import Callable

from kinds import expressions, statements

NAMES = (
    *("self", "cls", "torch", "nn", "F", "model", "optimizer", "loss", "x", "forward", "__init__", "_", "__", "match"),
    *(
        "case",
        "type",
        "super",
        "Module",
        "Tensor",
        "ñ",
        "𝔘𝔫𝔦",
        "ℌ",
        "变量",
        "x" * 300,
        "__class__",
        "__debug__x",
        "print",
    ),
)
CONSTANTS = (
    *(0, -1, 1, 2**63, 10**400, 0.0, 1e-320, float("inf"), 1j, True, False, None, ..., "", "cuda", "mean", "\0", "\n"),
    *("\ud800", "x" * 5000, "🔥", b"", b"\xff"),
)
WRAPPERS = (
    *("if x:\n    HERE", "while x:\n    HERE", "for x in y:\n    HERE", "with x as y:\n    HERE"),
    *(
        "try:\n    HERE\nexcept Exception:\n    pass",
        "try:\n    pass\nfinally:\n    HERE",
        "def f(self, *x, **y):\n    HERE",
    ),
    *(
        "class C(nn.Module):\n    HERE",
        "async def f():\n    HERE",
        "with torch.no_grad():\n    HERE",
        "else_ = 1\nif x:\n    HERE",
    ),
    *("match x:\n    case [y]:\n        HERE", "for epoch in range(10):\n    for batch in loader:\n        HERE"),
)
TEXT_LIMIT = 60_000


def mutant(text: str, rng: random.Random) -> str:
    """Another program, close to this one; often, not always, one that parses."""
    if rng.random() < 0.2:
        return damaged(text, rng)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
            for _ in range(rng.choice((1, 1, 2, 3, 5, 8)) if tree.body else 0):
                rng.choice(MUTATIONS)(tree, rng)
            made = ast.unparse(ast.fix_missing_locations(tree))
    except (SyntaxError, ValueError, RecursionError, MemoryError, AttributeError, TypeError, KeyError):
        return damaged(text, rng)  # what ast.unparse can't write, such as an f-string within itself
    return damaged(made, rng) if rng.random() < 0.05 else made


def damaged(text: str, rng: random.Random) -> str:
    """The text with some of its lines or characters gone, doubled, or in disorder."""
    lines = text.splitlines(keepends=True) or [""]
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(lines))
        other = rng.randrange(len(lines))
        kind = rng.randrange(10)
        if kind == 0 and len(lines) > 1:
            del lines[at]
        elif kind == 1:
            lines.insert(at, lines[other])
        elif kind == 2:
            lines[at], lines[other] = lines[other], lines[at]
        elif kind == 3:
            cut = rng.randrange(len(lines[at]) + 1)
            lines[at] = (
                lines[at][:cut]
                + rng.choice(("(", ")", "\\\n", "\0", "\f", "\ufeff", "\r", "'", '"""', ";", "#"))
                + lines[at][cut:]
            )
        elif kind == 4:
            lines[at] = "\t" + lines[at]
        elif kind == 5:
            lines[at] = lines[at].lstrip()
        elif kind == 6:
            lines = [line.replace("\n", "\r\n") for line in lines]
        elif kind == 7:
            lines = lines[: at + 1]
        elif kind == 8:
            lines[at] = lines[at].rstrip("\n") + "  # noqa: TL101, X,,\n"
        else:
            lines[at] = lines[at].replace("    ", "\t").replace(" ", "\u00a0", rng.randrange(2))
    return "".join(lines)


def _suites(tree: ast.AST) -> list[list[ast.stmt]]:
    found = []
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            suite = getattr(node, name, None)
            if isinstance(suite, list) and suite:
                found.append(suite)
    return found


def _places(tree: ast.AST) -> list[tuple[ast.AST, str, int]]:
    """Where expressions that are read stand: the node that holds each, the field, the index in it or -1."""
    found: list[tuple[ast.AST, str, int]] = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.JoinedStr, ast.pattern)):
            continue
        for name, value in ast.iter_fields(node):
            if isinstance(value, ast.expr) and not isinstance(getattr(value, "ctx", None), (ast.Store, ast.Del)):
                found.append((node, name, -1))
            elif isinstance(value, list):
                found += [
                    (node, name, at)
                    for at, item in enumerate(value)
                    if isinstance(item, ast.expr) and not isinstance(getattr(item, "ctx", None), (ast.Store, ast.Del))
                ]
    return found


def _get(place: tuple[ast.AST, str, int]) -> ast.expr:
    node, name, at = place
    value = getattr(node, name)
    return value if at < 0 else value[at]


def _put(place: tuple[ast.AST, str, int], new: ast.expr) -> None:
    node, name, at = place
    if at < 0:
        setattr(node, name, new)
    else:
        getattr(node, name)[at] = new


def _statement(tree: ast.AST, rng: random.Random) -> tuple[list[ast.stmt], int]:
    suite = rng.choice(_suites(tree))
    return suite, rng.randrange(len(suite))


def delete(tree: ast.AST, rng: random.Random) -> None:
    """Take a statement away."""
    suite, at = _statement(tree, rng)
    suite[at : at + 1] = [ast.Pass()] if len(suite) == 1 else []


def duplicate(tree: ast.AST, rng: random.Random) -> None:
    """Say a statement twice, or many times."""
    suite, at = _statement(tree, rng)
    suite[at:at] = [copy.deepcopy(suite[at]) for _ in range(rng.choice((1, 1, 1, 2, 20)))]


def swap(tree: ast.AST, rng: random.Random) -> None:
    """Exchange two statements of anywhere."""
    one, at = _statement(tree, rng)
    other, there = _statement(tree, rng)
    first, second = copy.deepcopy(one[at]), copy.deepcopy(other[there])
    one[at], other[there] = second, first


def move(tree: ast.AST, rng: random.Random) -> None:
    """Copy a statement to another place."""
    one, at = _statement(tree, rng)
    other, there = _statement(tree, rng)
    other.insert(there, copy.deepcopy(one[at]))


def nest(tree: ast.AST, rng: random.Random) -> None:
    """Put statements into a block of some kind, or of several."""
    suite, at = _statement(tree, rng)
    end = at + rng.choice((1, 1, 2, 5))
    inner = suite[at:end]
    for _ in range(rng.choice((1, 1, 2, 12))):
        wrapper = ast.parse(rng.choice(WRAPPERS))
        for held in _suites(wrapper):
            if isinstance(held[0], ast.Expr) and isinstance(held[0].value, ast.Name) and held[0].value.id == "HERE":
                held[:] = inner
                break
        inner = wrapper.body
    suite[at:end] = inner


def flatten(tree: ast.AST, rng: random.Random) -> None:
    """Put a block's statements in its place."""
    suite, at = _statement(tree, rng)
    inner = getattr(suite[at], "body", None)
    if isinstance(inner, list) and inner:
        suite[at : at + 1] = inner


def add_statement(tree: ast.AST, rng: random.Random) -> None:
    """Add a statement of any kind."""
    suite, at = _statement(tree, rng)
    kinds = list(statements(rng.choice(expressions())))
    suite[at:at] = ast.parse(rng.choice(kinds)).body


def exchange(tree: ast.AST, rng: random.Random) -> None:
    """Put one of the program's expressions in another's place."""
    places = _places(tree)
    if places:
        _put(rng.choice(places), copy.deepcopy(_get(rng.choice(places))))


def add_expression(tree: ast.AST, rng: random.Random) -> None:
    """Put an expression of any kind in the place of one."""
    places = _places(tree)
    if places:
        _put(rng.choice(places), ast.parse(f"({rng.choice(expressions())})", mode="eval").body)


def deepen(tree: ast.AST, rng: random.Random) -> None:
    """Say an expression of itself, many times over."""
    places = _places(tree)
    if not places:
        return
    place = rng.choice(places)
    inner = _get(place)
    depth = rng.choice((3, 30, 60))
    for _ in range(depth):
        inner = rng.choice(
            (
                lambda e: ast.Attribute(e, "x", ast.Load()),
                lambda e: ast.Call(e, [], []),
                lambda e: ast.Call(ast.Name("model", ast.Load()), [e], []),
                lambda e: ast.List([e], ast.Load()),
                lambda e: ast.UnaryOp(ast.USub(), e),
                lambda e: ast.BinOp(e, ast.Add(), ast.Constant(1)),
                lambda e: ast.Subscript(e, ast.Constant(0), ast.Load()),
            )
        )(inner)
    _put(place, inner)


def rename(tree: ast.AST, rng: random.Random) -> None:
    """Give a name, an attribute, a parameter, a keyword or a definition another name: once, or everywhere."""
    fields = {ast.Name: "id", ast.Attribute: "attr", ast.arg: "arg", ast.FunctionDef: "name", ast.ClassDef: "name"}
    named = [node for node in ast.walk(tree) if type(node) in fields]
    if not named:
        return
    node = rng.choice(named)
    old = getattr(node, fields[type(node)])
    new = rng.choice((rng.choice(NAMES), getattr(chosen := rng.choice(named), fields[type(chosen)])))
    everywhere = rng.random() < 0.3
    for each in named if everywhere else [node]:
        if getattr(each, fields[type(each)]) == old:
            setattr(each, fields[type(each)], new)


def change_constant(tree: ast.AST, rng: random.Random) -> None:
    """Write another constant."""
    constants = [place for place in _places(tree) if isinstance(_get(place), ast.Constant)]
    if constants:
        _put(rng.choice(constants), ast.Constant(rng.choice(CONSTANTS)))


def change_arguments(tree: ast.AST, rng: random.Random) -> None:
    """Drop, double, reorder or unpack a call's arguments."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    if not calls:
        return
    call = rng.choice(calls)
    kind = rng.randrange(5)
    if kind == 0:
        call.args = call.args[:-1]
    elif kind == 1:
        call.keywords = call.keywords[1:]
    elif kind == 2 and call.args:
        call.args = [*call.args, copy.deepcopy(call.args[0])]
    elif kind == 3:
        call.args.insert(0, ast.Starred(ast.Name("x", ast.Load()), ast.Load()))
    else:
        call.keywords.append(ast.keyword(None, ast.Name("kwargs", ast.Load())))


def change_bases(tree: ast.AST, rng: random.Random) -> None:
    """Let a class derive from another of the file, or from itself."""
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    if classes:
        cls = rng.choice(classes)
        cls.bases.append(ast.Name(rng.choice(classes).name, ast.Load()))


MUTATIONS: tuple[Callable[[ast.AST, random.Random], None], ...] = (
    *(delete, delete, duplicate, swap, move, nest, nest, flatten, add_statement, exchange, exchange, add_expression),
    *(deepen, rename, rename, change_constant, change_arguments, change_bases),
)

"""Every program in fixtures/ says in its first comments what it does on real torch, and does it.

    # run: ok                                            it runs to its end
    # run: raises RuntimeError: a leaf Variable          it raises that, with these words in the message
    # run: warns UserWarning: fragment                   it runs to its end and warns so
    # run: true len(list(net.parameters())) == 0         it runs to its end, and then this is true in its namespace
    # run: no <reason>                                   it can't run on a CPU alone, or without a package

Several directives must all hold. So a rule's bad programs are known to fail, or to go wrong silently, in the way the
rule says, and the repaired ones are known not to.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from running import Server

FIXTURES = Path(__file__).parent.parent / "fixtures"
PROGRAMS = sorted(path.relative_to(FIXTURES) for path in FIXTURES.glob("TL*/**/*.py"))
KINDS = ("ok", "raises", "warns", "true", "no")

Directive = tuple[str, str]


def directives(program: Path) -> list[Directive]:
    """The ``# run:`` lines among the comments that begin a program: kind and the rest."""
    found: list[Directive] = []
    for line in (FIXTURES / program).read_bytes().decode("utf-8-sig", "replace").splitlines():
        if not line.startswith("#"):
            break
        if line.startswith("# run:"):
            kind, _, rest = line.removeprefix("# run:").strip().partition(" ")
            found.append((kind, rest.strip()))
    return found


def broken(wanted: list[Directive], happened: dict[str, Any]) -> Iterator[str]:
    """What a program did that its directives don't say, or didn't do that they say."""
    values = iter(happened["truths"])
    may_raise = any(kind == "raises" for kind, _ in wanted)
    if happened["raised"] and not may_raise:
        yield f"it raised {happened['raised'][0]}: {happened['message']}\n{happened['trace']}"
    for kind, rest in wanted:
        name, _, fragment = rest.partition(": ")
        if kind == "raises":
            if not happened["raised"]:
                yield f"it did not raise {rest}"
            elif name not in happened["raised"] or fragment not in happened["message"]:
                yield f"it did not raise {rest}\nbut {happened['raised'][0]}: {happened['message']}"
        elif kind == "warns":
            if not any(name in names and fragment in text for names, text in happened["warnings"]):
                yield f"it did not warn {rest}\nbut {happened['warnings']}"
        elif kind == "true" and (value := next(values)) != "true":
            yield f"`{rest}` is {value}"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_a_program_says_what_it_does_on_torch(program: Path) -> None:
    found = directives(program)
    assert found, f"fixtures/{program} begins with no `# run:` line"
    assert [kind for kind, _ in found if kind not in KINDS] == []
    bare = [kind for kind, rest in found if kind != "ok" and not rest]
    assert bare == [], "a directive without its text"


@pytest.mark.torch
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed: no program was run")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system can't fork: no program was run")
@pytest.mark.parametrize("program", [p for p in PROGRAMS if "no" not in dict(directives(p))], ids=str)
def test_a_program_does_on_torch_what_it_says(program: Path, server: Server) -> None:
    wanted = directives(program)
    happened = server.run(FIXTURES / program, [rest for kind, rest in wanted if kind == "true"])
    wrong = list(broken(wanted, happened))
    assert not wrong, f"\nfixtures/{program}:\n" + "\n".join(wrong)

"""Write torchlint/torchapi/*.tsv from the installed torch.

    python scripts/generate_torchapi.py            write the tables
    python scripts/generate_torchapi.py --check    say which would change; exit 1 if any

Run by hand, on a CPU, with the torch the project's tests pin; the tables name the version they were measured on.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from collections.abc import Iterable

import torch
from measuring import callables, layers, operations
from measuring.aliases import alias_table, offered
from torch import nn

TABLES = Path(__file__).parent.parent / "torchlint" / "torchapi"
COMMAND = "python scripts/generate_torchapi.py"


def table_text(title: str, columns: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A tab-separated table under a header that says where it comes from."""
    lines = [
        f"# {title}",
        f"# measured on torch {torch.__version__.split('+')[0]} by `{COMMAND}`; not edited by hand",
        "# " + "\t".join(columns),
    ]
    for row in rows:
        cells = [*row]
        assert not any("\t" in cell or "\n" in cell for cell in cells), cells
        lines.append("\t".join(cells).rstrip("\t"))
    return "\n".join(lines) + "\n"


def aliases_text() -> str:
    """aliases.tsv: a canonical name and the other paths to it."""
    grouped: dict[str, list[str]] = {}
    for alias, canonical in alias_table().items():
        grouped.setdefault(canonical, []).append(alias)
    rows = [(canonical, " ".join(sorted(names))) for canonical, names in sorted(grouped.items())]
    return table_text("one name for everything torch offers under several paths", ("canonical", "aliases"), rows)


def modules_text() -> str:
    """modules.tsv: every public nn.Module class."""
    table = alias_table()
    found: dict[str, type[nn.Module]] = {}
    for path, member in offered():
        if isinstance(member, type) and issubclass(member, nn.Module):
            found[table.get(path, path)] = member
    names = {cls: name for name, cls in found.items()}

    def canonical(cls: type) -> str:
        return names.get(cls, f"{cls.__module__}.{cls.__qualname__}")

    rows = [layers.layer_row(cls, canonical) for _, cls in sorted(found.items())]
    base = next(index for index, row in enumerate(rows) if row[0] == "torch.nn.Module")
    rows[base] = (*rows[base][:-1], " ".join(sorted(layers.module_attributes())))
    return table_text("the classes that are nn.Modules", layers.COLUMNS, rows)


def operations_text() -> str:
    """operations.tsv: every function and Tensor method."""
    return table_text("what torch's operations do", operations.COLUMNS, operations.rows())


def signatures_text() -> str:
    """signatures.tsv: optimizers, schedulers, loaders and other callables."""
    return table_text("how torch's other callables are called", callables.COLUMNS, callables.rows(alias_table()))


WRITERS = {
    "aliases.tsv": aliases_text,
    "modules.tsv": modules_text,
    "operations.tsv": operations_text,
    "signatures.tsv": signatures_text,
}


def main() -> int:
    parser = argparse.ArgumentParser(description="write torchlint's tables about torch")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a table would change")
    parser.add_argument("tables", nargs="*", default=list(WRITERS), help="which tables (default: all)")
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # sums come out alike everywhere, and small tensors faster
    changed = []
    for name in arguments.tables:
        text = WRITERS[name]()
        path = TABLES / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            changed.append(name)
            if not arguments.check:
                path.write_text(text, encoding="utf-8")
    print("changed:", ", ".join(changed) or "nothing")
    return 1 if arguments.check and changed else 0


if __name__ == "__main__":
    sys.exit(main())

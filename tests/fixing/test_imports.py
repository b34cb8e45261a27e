"""A name is spelt as the file spells it, and imported where it belongs when the file can't say it yet."""

from __future__ import annotations

import ast

import pytest
from editing import changed, node

from torchlint.source.edits import add_import, name_for
from torchlint.source.file import source_from_text


def spelling(text: str, qualified: str) -> tuple[str, str] | None:
    """How a name is to be spelt in place of ``here()``, and the text with the import that takes."""
    source = source_from_text(text)
    name = name_for(source, qualified, node(source, "here()", ast.Call))
    if name is None:
        return None
    return name.spelling, changed(source, name.edits) or ""


@pytest.mark.parametrize(
    ("imports", "expected"),
    [
        ("import torch", "torch.nn.ModuleList"),
        ("import torch as th", "th.nn.ModuleList"),
        ("import torch.nn", "torch.nn.ModuleList"),
        ("import torch.nn as tnn", "tnn.ModuleList"),
        ("from torch import nn", "nn.ModuleList"),
        ("from torch import nn as layers", "layers.ModuleList"),
        ("from torch.nn import ModuleList", "ModuleList"),
        ("from torch.nn import Linear, ModuleList as ML", "ML"),
        ("import torch; from torch import nn", "nn.ModuleList"),
        ("try:\n    import torch\nexcept ImportError:\n    pass", "torch.nn.ModuleList"),
        ("if True:\n    from torch import nn", "nn.ModuleList"),
    ],
)
def test_what_the_file_imports_is_used(imports: str, expected: str) -> None:
    text = f"{imports}\n\nx = here()\n"
    assert spelling(text, "torch.nn.ModuleList") == (expected, text)


def test_an_import_within_the_function_is_used() -> None:
    text = "def f():\n    import torch.nn.functional as F\n    return here()\n"
    assert spelling(text, "torch.nn.functional.relu") == ("F.relu", text)


@pytest.mark.parametrize(
    "text",
    [
        "from torch import nn\n\n\ndef f(nn):\n    here()\n",
        "from torch import nn\n\n\ndef f():\n    nn = 1\n    here()\n",
        "from torch import nn\n\n\ndef f():\n    import other as nn\n    here()\n",
        "from torch import nn\n\nnn = wrap(nn)\n\n\ndef f():\n    here()\n",
        "import typing\n\nif typing.TYPE_CHECKING:\n    from torch import nn\n\nhere()\nnn = 1\n",
    ],
)
def test_a_name_that_means_something_else_there_is_not_used(text: str) -> None:
    found = spelling(text, "torch.nn.ModuleList")
    assert found is not None
    assert found[0] == "torch.nn.ModuleList"
    assert "import torch\n" in found[1]


def test_an_import_below_is_of_no_use_above() -> None:
    assert spelling("x = here()\nfrom torch import nn\n", "torch.nn.ModuleList") == (
        "torch.nn.ModuleList",
        "import torch\n\nx = here()\nfrom torch import nn\n",
    )


def test_a_name_that_can_be_neither_reached_nor_imported_is_told_so() -> None:
    assert spelling("no_grad = torch = 1\nhere()\n", "torch.no_grad") is None
    assert spelling("torch = 1\nhere()\n", "torch.no_grad") == (
        "no_grad",
        "from torch import no_grad\n\ntorch = 1\nhere()\n",
    )


@pytest.mark.parametrize(
    ("text", "qualified", "expected"),
    [
        ("here()\n", "torch.no_grad", "import torch\n\nhere()\n"),
        (
            "#!/usr/bin/python\n# licence\nhere()\n",
            "torch.no_grad",
            "#!/usr/bin/python\n# licence\nimport torch\n\nhere()\n",
        ),
        ("'''doc'''\n\nhere()\n", "torch.no_grad", "'''doc'''\n\nimport torch\n\nhere()\n"),
        (
            "'''doc'''\nfrom __future__ import annotations\n\nhere()\n",
            "torch.no_grad",
            "'''doc'''\nfrom __future__ import annotations\n\nimport torch\n\nhere()\n",
        ),
        (
            "import os  # os\nimport numpy as np\nimport tqdm\n\nhere()\n",
            "torch.no_grad",
            "import os  # os\nimport numpy as np\nimport torch\nimport tqdm\n\nhere()\n",
        ),
        (
            "import torch\nfrom torch.utils import data\n\nhere()\n",
            "torch.utils.data.DataLoader",
            None,
        ),
        (
            "import os\nimport sys\n\nimport torch\n\nhere()\n",
            "copy.deepcopy",
            "import copy\nimport os\nimport sys\n\nimport torch\n\nhere()\n",
        ),
        ("import torch\n\nhere()\n", "copy.deepcopy", "import copy\n\nimport torch\n\nhere()\n"),
        ("import os\n\nhere()\n", "torch.no_grad", "import os\n\nimport torch\n\nhere()\n"),
        (
            "import os\n\nfrom . import x\n\nhere()\n",
            "torch.no_grad",
            "import os\n\nimport torch\n\nfrom . import x\n\nhere()\n",
        ),
        (
            "import torch\r\n\r\nhere()\r\n",
            "copy.deepcopy",
            "import copy\r\n\r\nimport torch\r\n\r\nhere()\r\n",
        ),
        (
            "from torch import optim\n\nhere()\n",
            "torch.nn.Linear",
            "from torch import nn\nfrom torch import optim\n\nhere()\n",
        ),
        ("import os; import re\nhere()\n", "copy.deepcopy", "import copy\nimport os; import re\nhere()\n"),
    ],
)
def test_a_new_import_stands_where_it_belongs(text: str, qualified: str, expected: str | None) -> None:
    found = spelling(text, qualified)
    assert found is not None
    assert found[1] == (expected or text)


def test_an_import_that_is_there_is_not_added_again() -> None:
    source = source_from_text("from torch import nn\n\nhere()\n")
    assert add_import(source, "from torch import nn") == ()

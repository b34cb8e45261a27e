"""Messages about two types that don't fit, whatever the version words them: which two, and what that means.

torch says the same in a dozen ways: two dtypes by their C++ or Python names, or two tensor types that also tell the
device.
"""

from __future__ import annotations

import re

# Over text without white space. ``wanted`` is the type the operation asks for, where the message says which that is.
_FORMS = tuple(
    re.compile(pattern)
    for pattern in (
        r"musthavethesamedtype,butgot(?P<a>\w+)and(?P<b>\w+)",
        r"tohavethesamedtype,butgot:(?P<a>[\w:]+?)!=(?P<b>[\w:]+)",
        r"(?P<layer>Inputtype)\((?P<a>[\w.: ]+)\)and(?:weight|bias)type\((?P<b>[\w.: ]+)\)",
        r"expectedscalartype(?P<wanted>\w+?)butfound(?P<b>\w+)",
        r"Expectedobjectofscalartype(?P<wanted>\w+?)butgotscalartype(?P<b>[A-Z][a-z0-9]+)",
        r"Expectedobjectoftype(?P<wanted>[\w.]+?)butfoundtype(?P<b>torch\.[\w.]*?Tensor)",
        r"inputdtype\((?P<b>[\w.]+)\)doesnotmatchweightdtype\((?P<a>[\w.]+)\)",
        r"Founddtype(?P<b>\w+?)butexpected(?P<wanted>[A-Z][a-z0-9]+)",
        r"expecteddtype(?P<wanted>\w+?)butgotdtype(?P<b>[A-Za-z]+)",
        r"tohavethesamedtype,butgotquery\.dtype:(?P<a>\w+?)key\.dtype:(?P<b>\w+?)and",
        r"dtypesmatch,got(?P<wanted>\w+?)forthedestinationand(?P<b>\w+?)forthesource",
        r"foundinputtensorwith(?P<a>\w+?)andhiddentensorwith(?P<b>[A-Z][a-z0-9]+)",
    )
)

_KINDS = {
    "double": "double", "float64": "double",
    "float": "float", "float32": "float",
    "half": "half", "float16": "half", "bfloat16": "half",
    **dict.fromkeys(
        ("long", "int64", "int", "int32", "short", "int16", "char", "int8", "byte", "uint8", "unsignedchar", "bool"),
        "integer",
    ),
}  # fmt: skip


def mismatch(text: str) -> tuple[str, int, int] | None:
    """The kind of mismatch that a message (without white space) tells of, and where it does; None if it tells none.

    Kinds: ``double/float``, ``half/float``, ``integer/float``, ``index/float`` (integers were wanted), ``device``, and
    ``layer device`` for a layer whose input is elsewhere.
    """
    for form in _FORMS:
        found = form.search(text)
        if found:
            kind = _kind(found.groupdict())
            if kind:
                return kind, found.start(), found.end()
    return None


def _kind(groups: dict[str, str | None]) -> str:
    first, second = groups.get("wanted") or groups.get("a") or "", groups["b"] or ""
    if _device(first) != _device(second):
        return "layer device" if groups.get("layer") else "device"
    pair = (_dtype(first), _dtype(second))
    if groups.get("wanted") and pair[0] == "integer" and pair[1] not in ("integer", ""):
        return "index/float"
    names = set(pair)
    if names == {"double", "float"}:
        return "double/float"
    if "half" in names and "" not in names and "integer" not in names:
        return "half/float"
    if "integer" in names and names & {"double", "float", "half"}:
        return "integer/float"
    return ""


def _device(name: str) -> str:
    if "Tensor" not in name and not name.startswith("MPS"):
        return ""
    return next((device for device in ("cuda", "xpu", "hpu", "MPS") if device in name), "cpu")


def _dtype(name: str) -> str:
    bare = re.sub(r"torch\.|cuda\.|xpu\.|c10::|Type$|Tensor$|^MPS", "", name)
    return _KINDS.get(re.sub(r"Type$", "", bare).lower(), "")

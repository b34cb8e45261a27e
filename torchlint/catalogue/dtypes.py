"""Messages about two types that don't fit, whatever the version words them: which two, and what that means.

torch says the same in a dozen ways: two dtypes by their C++ or Python names, or two tensor types that also tell the
device.
"""

from __future__ import annotations

import re

# Over text without white space, in which words run together: a type is what is known as one.
_SCALAR = r"(?:BFloat16|Double|Float|Half|Long|Int|Short|Char|Byte|Bool|ComplexFloat|ComplexDouble)"
_CPP = r"(?:c10::\w*?(?:Half|BFloat16)|double|float|longint|long|unsignedchar|signedchar|short|int|bool)"
_TENSOR = r"(?:torch\.(?:\w+\.)?[A-Z]\w*?Tensor)"

# ``wanted`` is the type the operation asks for, where the message says which that is.
_FORMS = (
    r"musthavethesamedtype,butgot(?P<a>SCALAR)and(?P<b>SCALAR)",
    r"tohavethesamedtype,butgot:(?P<a>CPP)!=(?P<b>CPP)",
    r"(?P<layer>Inputtype)\((?P<a>[\w.:]+)\)and(?:weight|bias)type\((?P<b>[\w.:]+)\)",
    r"expectedscalartype(?P<wanted>SCALAR)butfound(?P<b>SCALAR)",
    r"Expectedobjectofscalartype(?P<wanted>SCALAR)butgotscalartype(?P<b>SCALAR)",
    r"Expectedobjectoftype(?P<wanted>TENSOR)butfoundtype(?P<b>TENSOR)",
    r"inputdtype\((?P<b>[\w.]+)\)doesnotmatchweightdtype\((?P<a>[\w.]+)\)",
    r"Founddtype(?P<b>SCALAR)butexpected(?P<wanted>SCALAR)",
    r"expecteddtype(?P<wanted>SCALAR)butgotdtype(?P<b>SCALAR)",
    r"tohavethesamedtype,butgotquery\.dtype:(?P<a>CPP)key\.dtype:(?P<b>CPP)",
    r"dtypesmatch,got(?P<wanted>SCALAR)forthedestinationand(?P<b>SCALAR)forthesource",
    r"foundinputtensorwith(?P<a>SCALAR)andhiddentensorwith(?P<b>SCALAR)",
)

_NAMES = {
    "double": "double float64",
    "float": "float float32",
    "half": "half float16 bfloat16",
    "integer": "long longint int64 int int32 short int16 char signedchar int8 byte unsignedchar uint8 bool",
}
_KINDS = {name: kind for kind, names in _NAMES.items() for name in names.split()}


def mismatch(text: str) -> tuple[str, int, int] | None:
    """The kind of mismatch that a message (without white space) tells of, and where it does; None if it tells none.

    Kinds: ``double/float``, ``half/float``, ``integer/float``, ``index/float`` (integers were wanted), ``device``, and
    ``layer device`` for a layer whose input is elsewhere.
    """
    if "type" not in text:  # no form is without it, and few texts are with it
        return None
    for form in _FORMS:
        found = re.search(form.replace("SCALAR", _SCALAR).replace("CPP", _CPP).replace("TENSOR", _TENSOR), text)
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
    bare = re.sub(r"torch\.|cuda\.|xpu\.|c10::|Tensor$|Type$|^MPS", "", name)
    return _KINDS.get(bare.lower(), "")

"""What torch means, as tables: layers, operations, what training is made of.

The tables are measured on torch by ``scripts/generate_torchapi.py`` and read when first asked; torch itself is never
imported here.
"""

from torchlint.torchapi.hierarchy import external_class_derives, knows_external_class
from torchlint.torchapi.modules import UNKNOWN, Held, ModuleSpec, aliases, canonical, module_attributes, module_class
from torchlint.torchapi.operations import (
    Operation,
    TensorAttribute,
    function,
    inplace_form,
    operator,
    plain_form,
    tensor_attribute,
    tensor_method,
)
from torchlint.torchapi.saving import PARAMETERS, Need, saved_inputs, saved_outputs
from torchlint.torchapi.signatures import Argument, Signature, Symbol

__all__ = [
    "PARAMETERS",
    "UNKNOWN",
    "Argument",
    "Held",
    "ModuleSpec",
    "Need",
    "Operation",
    "Signature",
    "Symbol",
    "TensorAttribute",
    "aliases",
    "canonical",
    "external_class_derives",
    "function",
    "inplace_form",
    "knows_external_class",
    "module_attributes",
    "module_class",
    "operator",
    "plain_form",
    "saved_inputs",
    "saved_outputs",
    "tensor_attribute",
    "tensor_method",
]

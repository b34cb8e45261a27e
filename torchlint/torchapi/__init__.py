"""What torch means, as tables: layers, operations, what training is made of.

The tables are measured on torch by ``scripts/generate_torchapi.py`` and read when first asked; torch itself is never
imported here.
"""

from torchlint.torchapi.hierarchy import external_class_derives, knows_external_class
from torchlint.torchapi.modules import UNKNOWN, Held, ModuleSpec, aliases, canonical, module_attributes, module_class

__all__ = [
    "UNKNOWN",
    "Held",
    "ModuleSpec",
    "aliases",
    "canonical",
    "external_class_derives",
    "knows_external_class",
    "module_attributes",
    "module_class",
]

"""From a target's name to a model: import the user's module, find what it names, call it.

Two outcomes besides a model are results, not accidents: the user's code fails (``Broken``: TP101 or TP102), and the
constructor asks for arguments nobody gave (``Needs``).
"""

from __future__ import annotations

import contextlib
import copy
import dis
import importlib
import importlib.util
import inspect
import os
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from .sites import USER, Construction, Site, definition_site, error_site

# From here on (bytes of parameters and buffers) a model is built and run on fake tensors only.
REAL_LIMIT = 1_000_000_000
_META_FROM = 1 << 16


class Broken(Exception):
    """The user's code failed where ``code`` says; the cause is the user's exception, if there was one."""

    def __init__(self, code: str, message: str, site: Site | None = None, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.site = site
        self.hint = hint


class Needs(Exception):
    """The constructor has arguments without a default: their names, and where they are declared."""

    def __init__(self, names: tuple[str, ...], site: Site | None) -> None:
        super().__init__(", ".join(names))
        self.names = names
        self.site = site


class _TooLarge(BaseException):
    """More than REAL_LIMIT bytes were asked for while a model was built. Passes through ``except Exception``."""


@dataclass(frozen=True, slots=True)
class Target:
    """What is to be probed, as the launcher read it from the command line or the configuration."""

    label: str
    file: str | None = None
    module: str | None = None
    name: str | None = None
    call: str | None = None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Target:
        """From the request."""
        return cls(data["label"], data.get("file"), data.get("module"), data.get("name"), data.get("call"))


def root_of(file: str) -> tuple[str, str]:
    """The folder imports start from and the dotted name of a file: packages are followed up to the outermost one."""
    folder, stem = os.path.split(os.path.splitext(os.path.realpath(file))[0])
    names = [] if stem == "__init__" else [stem]
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder, name = os.path.split(folder)
        names.insert(0, name)
    return folder, ".".join(names)


def import_target(target: Target) -> types.ModuleType:
    """The module a target lives in. Raises Broken (TP101) with the user's own line."""
    try:
        if target.file:
            return _import_file(target.file)
        name = target.module or ""
        own = name.split(".")[0]
        with contextlib.suppress(ImportError, ValueError):
            found = importlib.util.find_spec(own)
            if found is not None:
                USER.own(found.submodule_search_locations or ([found.origin] if found.origin else []))
        return importlib.import_module(name)
    except _TooLarge:
        raise
    except SystemExit as stop:
        site = error_site(stop)
        raise Broken("TP101", f"importing the module ends the process: sys.exit({stop.code!r})", site, _GUARD) from stop
    except ModuleNotFoundError as error:
        missing = (error.name or "").split(".")[0]
        if target.module and not target.file and target.module.split(".")[0] == missing:
            message = f"there is no module named {target.module!r} in this interpreter ({sys.executable})"
        else:
            message = f"importing fails: no module named {error.name!r} in {sys.executable}; install it there"
        raise Broken("TP101", message, error_site(error)) from error
    except EOFError as error:
        message = "importing asks for input(): the script's body runs, and there is no one to answer"
        raise Broken("TP101", message, error_site(error), _GUARD) from error
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        raise Broken("TP101", f"importing fails: {describe(error)}", error_site(error)) from error


_GUARD = 'put the part that runs under `if __name__ == "__main__":`'


def describe(error: BaseException) -> str:
    """An exception's class and first lines, as a user would quote it."""
    text = str(error).strip()
    lines = [line for line in text.splitlines() if line.strip()]
    shown = " ".join(line.strip() for line in lines[:3])
    return f"{type(error).__name__}: {shown[:600]}" if shown else type(error).__name__


def _import_file(file: str) -> types.ModuleType:
    root, name = root_of(file)
    USER.own([os.path.dirname(os.path.realpath(file)), os.path.join(root, name.split(".")[0])])
    if root not in sys.path:
        sys.path.insert(0, root)
    loaded = sys.modules.get(name)
    if loaded is not None and _same_file(getattr(loaded, "__file__", None), file):
        return loaded
    with contextlib.suppress(ImportError, ValueError):
        found = importlib.util.find_spec(name)
        if found is not None and _same_file(found.origin, file):
            return importlib.import_module(name)
    # A file that its name doesn't lead to: it shadows a library (random.py) or has no valid module name.
    name = name if name.isidentifier() and name not in sys.modules else f"probed_{abs(hash(file))}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def _same_file(one: str | None, other: str) -> bool:
    return bool(one) and os.path.exists(one or "") and os.path.samefile(one or "", other)


def models_in(module: types.ModuleType) -> list[tuple[str, Any]]:
    """The concrete nn.Module classes a module defines, and the functions that say they return one, by source order."""
    found = []
    for name, value in list(vars(module).items()):
        if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
            continue
        if is_concrete_module(value) or returns_module(value):
            site = definition_site(value)
            found.append((site.row if site else 0, name, value))
    found.sort(key=lambda entry: (entry[0], entry[1]))
    return [(name, value) for _, name, value in found]


def is_concrete_module(value: Any) -> bool:
    """Whether a value is an nn.Module class one can call: it defines forward and nothing abstract."""
    if not (isinstance(value, type) and issubclass(value, nn.Module)) or inspect.isabstract(value):
        return False
    forward = value.forward
    return getattr(forward, "__name__", "") != "_forward_unimplemented" and not _only_raises(forward)


def _only_raises(function: Any) -> bool:
    """Whether a method's body is nothing: it raises NotImplementedError, or is a docstring, ``pass`` or ``...``."""
    code = getattr(function, "__code__", None)
    if code is None:
        return False
    if "NotImplementedError" in code.co_names and len(code.co_names) == 1:
        return True
    # No name, no attribute, no parameter is read: such a forward can't do anything with its input.
    operations = {instruction.opname for instruction in dis.get_instructions(code)}
    return not code.co_names and not any(name.startswith(("LOAD_FAST", "LOAD_DEREF")) for name in operations)


def returns_module(value: Any) -> bool:
    """Whether a function's annotation says that it makes a model."""
    if not inspect.isfunction(value):
        return False
    annotation = value.__annotations__.get("return")
    if isinstance(annotation, str):
        resolved: Any = value.__globals__
        for part in annotation.split("."):
            resolved = resolved.get(part) if isinstance(resolved, dict) else getattr(resolved, part, None)
        annotation = resolved
    return isinstance(annotation, type) and issubclass(annotation, nn.Module)


def resolve(module: types.ModuleType, target: Target) -> Any:
    """What the target's name stands for in its module."""
    value: Any = module
    for part in (target.name or "").split("."):
        try:
            value = getattr(value, part)
        except AttributeError:
            import difflib

            known = [name for name, _ in models_in(module)]
            near = difflib.get_close_matches(part, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(known[:8]) or 'no models'}"
            raise Broken("TP101", f"{module.__name__} has no {part!r}{hint}") from None
    return value


@dataclass
class Built:
    """A model, how to build another one like it, and where its parts were made."""

    model: nn.Module
    made_by: Any
    construction: Construction
    arguments: dict[str, Any] = field(default_factory=dict)
    fake_mode: Any = None
    seconds: float = 0.0
    said: str = ""

    @property
    def is_fake(self) -> bool:
        """Whether it was too large to be built for real."""
        return self.fake_mode is not None


class Builder:
    """Builds the model of a target, again and again, with the same seed if asked."""

    def __init__(self, target: Target, module: types.ModuleType, arguments: str | None = None) -> None:
        self.target = target
        self.module = module
        self.value = resolve(module, target)
        self.call = arguments or target.call
        self.said = ""

    def needs(self) -> tuple[str, ...]:
        """The names of the arguments that must be given and weren't."""
        if self.call is not None or isinstance(self.value, nn.Module) or not callable(self.value):
            return ()
        required = required_parameters(self.value)
        return tuple(name for name in required if self._conventional(name) is None)

    def build(self, seed: int = 0) -> Built:
        """A fresh model. Raises Needs or Broken (TP102)."""
        missing = self.needs()
        if missing:
            raise Needs(missing, definition_site(getattr(self.value, "__init__", self.value)))
        import time

        started = time.perf_counter()
        torch.manual_seed(seed)
        construction = Construction()
        try:
            with construction.recording(), _SizeGuard(REAL_LIMIT):
                model, arguments = self._make()
            built = Built(model, self.value, construction, arguments)
        except _TooLarge:
            built = self.build_fake(seed)
        built.seconds = time.perf_counter() - started
        built.said = self.said
        return built

    def build_fake(self, seed: int = 0) -> Built:
        """A fresh model on fake tensors, however small. Raises Broken (TP102)."""
        torch.manual_seed(seed)
        try:
            return self._built_on_meta(_META_FROM)
        except Broken:
            # Small real tensors and large ones without values may not go together; then let none have values.
            return self._built_on_meta(0)

    def _built_on_meta(self, smallest: int) -> Built:
        construction = Construction()
        with construction.recording(), _LargeOnMeta(smallest):
            model, arguments = self._make()
        return Built(model, self.value, construction, arguments, make_fake(model))

    def _make(self) -> tuple[nn.Module, dict[str, Any]]:
        arguments: dict[str, Any] = {}
        try:
            if isinstance(self.value, nn.Module):
                made: Any = copy.deepcopy(self.value)
            elif self.call is not None:
                names = {"torch": torch, "nn": nn, **vars(self.module), "__target__": _Noting(self.value, arguments)}
                made = eval(f"__target__{self.call}", names)
            elif callable(self.value):
                given = {name: self._conventional(name) for name in required_parameters(self.value)}
                arguments.update(bound_arguments(self.value, (), given))
                made = self.value(**{name: make() for name, make in given.items() if make is not None})
            else:
                raise Broken("TP102", f"{self.target.label} is a {type(self.value).__name__}, not a model or a factory")
        except (Broken, KeyboardInterrupt, _TooLarge):
            raise
        except SystemExit as stop:
            raise Broken(
                "TP102", f"the constructor ends the process: sys.exit({stop.code!r})", error_site(stop)
            ) from stop
        except EOFError as error:
            raise Broken("TP102", "the constructor asks for input()", error_site(error)) from error
        except BaseException as error:
            from .diagnosis import construct_hint

            site = error_site(error) or definition_site(getattr(self.value, "__init__", self.value))
            raise Broken("TP102", f"the constructor fails: {describe(error)}", site, construct_hint(error)) from error
        return self._model_of(made), arguments

    def _model_of(self, made: Any) -> nn.Module:
        if isinstance(made, (tuple, list)):
            made = next((item for item in made if isinstance(item, nn.Module)), made)
        if not isinstance(made, nn.Module):
            raise Broken(
                "TP102",
                f"{self.target.label} gives a {type(made).__name__}, not an nn.Module",
                definition_site(self.value),
            )
        return made

    def _conventional(self, name: str) -> Callable[[], Any] | None:
        """How to make an argument that a convention defines: a configuration class whose fields all have defaults."""
        config_class = getattr(self.value, "config_class", None)
        if name == "config" and isinstance(config_class, type):
            self.said = f"config={config_class.__name__}()"
            return config_class
        annotation = _annotation(self.value, name)
        if isinstance(annotation, type) and (
            hasattr(annotation, "__dataclass_fields__") or annotation.__name__.lower().endswith(("config", "args"))
        ):
            try:
                if not required_parameters(annotation):
                    self.said = f"{name}={annotation.__name__}()"
                    return annotation
            except ValueError:
                return None
        return None


class _Noting:
    """Calls a class or factory and notes with which arguments."""

    def __init__(self, function: Any, arguments: dict[str, Any]) -> None:
        self._function = function
        self._arguments = arguments

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with contextlib.suppress(TypeError, ValueError):
            self._arguments.update(bound_arguments(self._function, args, kwargs))
        return self._function(*args, **kwargs)


def _annotation(function: Any, name: str) -> Any:
    init: Any = getattr(function, "__init__", None) if isinstance(function, type) else function
    annotation = getattr(init, "__annotations__", {}).get(name)
    if isinstance(annotation, str):
        return getattr(init, "__globals__", {}).get(annotation)
    return annotation


def required_parameters(function: Any) -> tuple[str, ...]:
    """The parameters of a class or function that have no default."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return ()
    return tuple(
        parameter.name
        for parameter in signature.parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    )


def bound_arguments(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call by name, defaults included."""
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return dict(kwargs)
    bound.apply_defaults()
    flat: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        if isinstance(value, dict) and name in ("kwargs", "model_kwargs"):
            flat.update(value)
        else:
            flat[name] = value
    return flat


def _constructors() -> set[Any]:
    from torch.utils import _device

    found: set[Any] = set(_device._device_constructors())
    return found


class _SizeGuard(torch.overrides.TorchFunctionMode):
    """Counts what factory functions allocate and stops a construction that goes beyond the limit."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit
        self._total = 0
        self._factories = _constructors()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if func in self._factories and isinstance(made, torch.Tensor):
            self._total += made.numel() * made.element_size()
            if self._total > self._limit:
                raise _TooLarge
        return made


class _LargeOnMeta(torch.overrides.TorchFunctionMode):
    """Makes large tensors on the meta device, where they cost nothing; small ones stay real, so ``.item()`` works."""

    def __init__(self, smallest: int = _META_FROM) -> None:
        super().__init__()
        self._smallest = smallest
        self._factories = _constructors()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func not in self._factories:
            return func(*args, **kwargs)
        try:
            made = func(
                *args,
                **{**kwargs, "device": "meta", "pin_memory": False}
                if "pin_memory" in kwargs
                else {**kwargs, "device": "meta"},
            )
        except (TypeError, RuntimeError):
            return func(*args, **kwargs)
        return made if made.numel() >= self._smallest else func(*args, **kwargs)


def fake_like(tensor: torch.Tensor, fake_mode: Any, device: str = "cpu") -> torch.Tensor:
    """A fake tensor of the same sizes, strides and dtype on a device that needn't exist."""
    from torch._subclasses.fake_tensor import FakeTensor

    with torch.no_grad():
        meta = torch.empty_strided(tuple(tensor.shape), tensor.stride(), dtype=tensor.dtype, device="meta")
    made: torch.Tensor = FakeTensor(fake_mode, meta, torch.device(device))
    return made


def new_fake_mode() -> Any:
    """A fake tensor mode that takes the real tensors a module keeps in plain attributes along."""
    import logging

    from torch._subclasses.fake_tensor import FakeTensorMode

    # It logs a traceback of its own for each failing operation; failing is what trial runs are for.
    logging.getLogger("torch._subclasses.fake_tensor").setLevel(logging.CRITICAL)
    return FakeTensorMode(allow_non_fake_inputs=True)


def make_fake(model: nn.Module) -> Any:
    """Replace every parameter, buffer and tensor attribute of a model by a fake one on the CPU; returns the mode."""
    fake_mode = new_fake_mode()
    twins: dict[int, torch.Tensor] = {}

    def twin(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in twins:
            made = fake_like(tensor, fake_mode)
            if isinstance(tensor, nn.Parameter):
                made = nn.Parameter(made, requires_grad=tensor.requires_grad)
            twins[id(tensor)] = made
        return twins[id(tensor)]

    for module in model.modules():
        stores: tuple[Any, ...] = (module._parameters, module._buffers, vars(module))
        for store in stores:
            for name, value in list(store.items()):
                if isinstance(value, torch.Tensor):
                    store[name] = twin(value)
    return fake_mode


@contextlib.contextmanager
def quiet_defaults() -> Iterator[None]:
    """Put back what user code may have changed for the whole process: default dtype, grad mode, seeds stay ours."""
    dtype = torch.get_default_dtype()
    try:
        yield
    finally:
        torch.set_default_dtype(dtype)
        torch.set_grad_enabled(True)

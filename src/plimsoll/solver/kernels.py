"""The hot loops, written once: they run as machine code if numba has compiled them, else as Python.

A module of the solver marks a kernel with `@kernel()`. Its signature is read from the annotations, which must exist at
run time (no `from __future__ import annotations` in such a module): `IntVector` and similar types, int, float, bool,
and named tuples of these. `@kernel("result(arguments)")` gives the signature in numba's notation instead. A kernel
takes C-contiguous, writable arrays, calls other kernels by name, never divides by 0, and does not sum with numpy, which
uses its own order of additions. So both ways of running it give the same numbers, bit by bit. `allocates=False`: the
kernel creates no array, not even a temporary one. Its machine code then counts no references, which would be most of
the work of small kernels that are called millions of times. `inlined=True`: it becomes part of the machine code of its
callers, which saves the copies of its arguments.

Compiling takes tens of seconds, loading the result from disk a fraction of one. `PLIMSOLL_KERNELS` selects the mode:
`plain` never uses numba, `numba` compiles what is called, `auto` (the default) uses machine code if the cache on disk
is warm or as soon as `compile_all` has finished, and Python until then. `python -m plimsoll.solver.kernels` warms the
cache.

numba is imported when the first compiled kernel is, never with this module.
"""

import functools
import hashlib
import importlib
import os
import pkgutil
import platform
import sys
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    Literal,
    ParamSpec,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from plimsoll.solver.problem import Flags, Floats, Ints

IntVector = Annotated[Ints, "i8[::1]"]
IntMatrix = Annotated[Ints, "i8[:,::1]"]
FloatVector = Annotated[Floats, "f8[::1]"]
FloatMatrix = Annotated[Floats, "f8[:,::1]"]
FlagVector = Annotated[Flags, "b1[::1]"]
FlagMatrix = Annotated[Flags, "b1[:,::1]"]

P = ParamSpec("P")
R = TypeVar("R")

Choice = Literal["plain", "numba", "auto"]

VARIABLE: Final = "PLIMSOLL_KERNELS"
PACKAGE: Final = "plimsoll.solver"
_MARK: Final = "\n@kernel("
"""Files that contain this are sources of machine code."""
_READY: Final = "ready"


class Kernel(Generic[P, R]):
    """A function that runs as machine code if that is ready, else as Python."""

    def __init__(
        self, plain: Callable[P, R], signature: str | None, *, allocates: bool = True, inlined: bool = False
    ) -> None:
        self.plain: Final = plain
        self.signature: Final = signature
        self.allocates: Final = allocates
        self.inlined: Final = inlined
        self._fast: Callable[P, R] | None = None
        functools.update_wrapper(self, plain)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if _switch.is_compiled():
            return (self._fast or self.get_compiled())(*args, **kwargs)
        return self.plain(*args, **kwargs)

    def get_compiled(self) -> Callable[P, R]:
        """The machine code, loaded from the cache on disk or compiled now."""
        with _compiling:
            if self._fast is None:
                self._fast = _compile(self)
            return self._fast


def kernel(
    signature: str | None = None, *, allocates: bool = True, inlined: bool = False
) -> Callable[[Callable[P, R]], Kernel[P, R]]:
    """Mark a function as a kernel: `@kernel()`, or `@kernel("i8(i8[:,::1], f8[::1], b1)")`."""

    def mark(plain: Callable[P, R]) -> Kernel[P, R]:
        made = Kernel(plain, signature, allocates=allocates, inlined=inlined)
        _kernels.append(made)
        return made

    return mark


def compile_all() -> int:
    """Compile every kernel of the solver, store the code on disk and use it from now on; returns their number.

    With a warm cache nothing is compiled: a kernel is loaded when it is called first. It may run in a thread beside a
    planner, which continues with Python. Without numba it returns 0.
    """
    if not _is_numba_installed():
        return 0
    for module in pkgutil.walk_packages(importlib.import_module(PACKAGE).__path__, f"{PACKAGE}."):
        importlib.import_module(module.name)
    ours = [found_kernel for found_kernel in _kernels if found_kernel.plain.__module__.startswith(PACKAGE)]
    if not is_cache_warm():
        for our in ours:
            our.get_compiled()
    if _is_writable(directory := find_cache_directory()):
        (directory / _READY).touch()
    _switch.finished = True
    return len(ours)


def is_cache_warm() -> bool:
    """Whether machine code of every kernel is on disk, so that it only has to be loaded."""
    return _is_numba_installed() and (find_cache_directory() / _READY).exists() and _is_writable(find_cache_directory())


def is_compiled() -> bool:
    """Whether kernels run as machine code now: for loops that have another way of running without it."""
    return _switch.is_compiled()


@contextmanager
def force_choice(choice: Choice) -> Iterator[None]:
    """Within the block, kernels run this way regardless of the environment."""
    before = _switch.choice
    _switch.choice = choice
    try:
        yield
    finally:
        _switch.choice = before


class _Switch:
    """Which way kernels run in this process."""

    def __init__(self) -> None:
        self.choice: Choice | None = None
        self.finished = False

    def is_compiled(self) -> bool:
        if self.choice is None:
            self.choice = _read_choice()
        if self.choice == "auto":
            return self.finished or self._warm
        return self.choice == "numba"

    @functools.cached_property
    def _warm(self) -> bool:
        """Checked once: a cache that another process warms later is used after the next start."""
        return is_cache_warm()


def _read_choice() -> Choice:
    choice = os.environ.get(VARIABLE, "") or "auto"
    if choice not in get_args(Choice):
        raise ValueError(f"{VARIABLE}={choice!r}: must be one of {', '.join(get_args(Choice))}")
    return cast("Choice", choice)


@functools.cache
def find_cache_directory() -> Path:
    """The directory of machine code for these sources, these versions and this processor.

    Each combination has its own: numba checks whether the file of a kernel changed, but not those of kernels it calls.
    """
    digest = hashlib.sha256()
    folder = Path(__file__).parent
    for file in sorted(folder.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        if _MARK in text or file.samefile(__file__):
            digest.update(f"{file.relative_to(folder)}\n{text}\0".encode())
    versions = [f"{name} {metadata.version(name)}" for name in ("numba", "numpy", "llvmlite")]
    digest.update("\n".join((*versions, platform.python_version(), _describe_processor())).encode())
    return _find_cache_root() / f"kernels-{digest.hexdigest()[:16]}"


def _find_cache_root() -> Path:
    if directory := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(directory)
    beside = Path(__file__).parent / "__pycache__"
    if _is_writable(beside):
        return beside
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "plimsoll"


def _describe_processor() -> str:
    """Name and features: a cache shipped to another processor is not warm there. `generic` fits every one."""
    if name := os.environ.get("NUMBA_CPU_NAME"):
        return name
    about = Path("/proc/cpuinfo")
    if not about.exists():
        return f"{platform.machine()} {platform.processor()}"
    lines = about.read_text(encoding="utf-8", errors="replace").splitlines()
    keys = ("model name", "flags", "CPU part", "Features")
    return "\n".join(sorted({line for line in lines if line.startswith(keys)}))


def _is_writable(directory: Path) -> bool:
    """Whether files can be created there: otherwise numba does not even read its cache."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(directory, os.W_OK)


@functools.cache
def _is_numba_installed() -> bool:
    try:
        metadata.version("numba")
    except metadata.PackageNotFoundError:
        return False
    return True


def _read_signature(plain: Callable[..., Any], numba: Any) -> Any:
    hints = get_type_hints(plain, include_extras=True)
    result = hints.pop("return")
    return _find_machine_type(result, numba)(*(_find_machine_type(hint, numba) for hint in hints.values()))


def _find_machine_type(hint: Any, numba: Any) -> Any:
    if get_origin(hint) is Annotated:
        element, _, shape = hint.__metadata__[0].partition("[")
        return numba.types.Array(getattr(numba.types, element), shape.count(",") + 1, "C")
    if get_origin(hint) is tuple:
        return numba.types.BaseTuple.from_types([_find_machine_type(part, numba) for part in get_args(hint)])
    if hasattr(hint, "_fields"):
        fields = get_type_hints(hint, include_extras=True)
        return numba.types.BaseTuple.from_types(
            [_find_machine_type(fields[name], numba) for name in hint._fields], hint
        )
    return {int: numba.int64, float: numba.float64, bool: numba.boolean, type(None): numba.void}[hint]


def _compile(kernel_: Kernel[P, R]) -> Callable[P, R]:
    numba: Any = importlib.import_module("numba")
    if is_cache_warm():
        # The machine code of called kernels is part of the caller's: loading it needs none of them.
        # If it is missing after all, compiling fails and is tried again with all of them.
        with suppress(numba.core.errors.NumbaError):
            return _compile_kernel(kernel_, numba, calling={})
    function = cast("types.FunctionType", kernel_.plain)
    called = {name: function.__globals__.get(name) for name in function.__code__.co_names}
    calling = {
        name: found_kernel.get_compiled() for name, found_kernel in called.items() if isinstance(found_kernel, Kernel)
    }
    return _compile_kernel(kernel_, numba, calling=calling)


def _compile_kernel(kernel_: Kernel[P, R], numba: Any, *, calling: dict[str, Callable[..., Any]]) -> Callable[P, R]:
    function = cast("types.FunctionType", kernel_.plain)
    scope = {**function.__globals__, **calling}
    linked = types.FunctionType(function.__code__, scope, function.__name__, function.__defaults__)
    linked.__qualname__ = function.__qualname__
    numba.config.CACHE_DIR = str(find_cache_directory())
    cached = _is_writable(find_cache_directory())
    signature = kernel_.signature or _read_signature(kernel_.plain, numba)
    options = {"cache": cached, "nogil": True, "error_model": "numpy", "forceinline": kernel_.inlined}
    # Numba's own word for doing without its run time, which is what counts references.
    compiler: Any = (
        numba.njit(signature, **options) if kernel_.allocates else numba.njit(signature, **options, _nrt=False)
    )
    return cast("Callable[P, R]", compiler(linked))


_kernels: Final[list[Kernel[..., Any]]] = []
_switch: Final = _Switch()
_compiling: Final = threading.RLock()


if __name__ == "__main__":
    # This file runs as `__main__` here; the kernels know it by its own name.
    count = importlib.import_module(f"{PACKAGE}.kernels").compile_all()
    sys.stdout.write(f"{count} kernels compiled\n" if count else "numba is not installed: kernels run as Python\n")

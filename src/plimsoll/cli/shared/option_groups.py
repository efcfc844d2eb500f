"""Groups of options that several commands share, declared once: typer itself has none.

    @takes_options("request", build_request)
    def plan(*, request: RebalanceRequest, output: OutputOption = Output.TABLE) -> None: ...

The command line of `plan` has the options of `build_request` in the place of `request`.
"""

from __future__ import annotations

import inspect
from functools import wraps
from typing import TYPE_CHECKING, Any, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Callable


def takes_options(name: str, build: Callable[..., Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The command with the options of `build` in place of its parameter `name`, which gets what `build` returns."""

    def wrap(command: Callable[..., None]) -> Callable[..., None]:
        options = _list_parameters(build)
        own = _list_parameters(command)
        place = next(index for index, parameter in enumerate(own) if parameter.name == name)
        parameters = [*own[:place], *options, *own[place + 1 :]]

        @wraps(command)
        def run(*positional: Any, **given: Any) -> None:
            built = build(**{parameter.name: given.pop(parameter.name) for parameter in options})
            command(*positional, **{name: built}, **given)

        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer reads both
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return wrap


def _list_parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters with their types."""
    hints = _read_hints(function)
    return [
        parameter.replace(annotation=hints[parameter.name])
        for parameter in inspect.signature(function).parameters.values()
    ]


def _read_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The types. One that is imported for type checks only is not loaded, so that `--help` stays fast."""
    not_loaded: dict[str, Any] = {}
    while True:
        try:
            return get_type_hints(function, localns=not_loaded, include_extras=True)
        except NameError as error:
            if error.name is None or error.name in not_loaded:
                raise
            not_loaded[error.name] = object

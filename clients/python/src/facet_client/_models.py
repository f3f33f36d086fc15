"""What requests have, and the reader of answers."""

from __future__ import annotations

import types
from dataclasses import MISSING, dataclass, fields
from datetime import datetime
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from ._errors import FacetError

T = TypeVar("T")


@dataclass(frozen=True)
class BulkItem:
    """One photo of a bulk registration. filename is its name in the object store."""

    filename: str
    tags: list[str] | None = None
    external_id: str | None = None
    user_data: dict[str, Any] | None = None
    expires: datetime | None = None


def camel(name: str) -> str:
    """Returns the interface's spelling of a field."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def read(kind: type[T], value: Any) -> T:
    """Returns the kind that a JSON value contains. Ignores unknown members. Raises a
    FacetError for a missing member without default, and for a wrong type."""
    try:
        result: T = _read(kind, value)
    except (ValueError, TypeError) as e:
        raise FacetError(f"the answer can't be read: {e}") from e
    return result


def _read(kind: Any, value: Any) -> Any:
    if kind is Any:
        return value
    if hasattr(kind, "__dataclass_fields__"):
        if not isinstance(value, dict):
            raise ValueError(f"{kind.__name__}: not an object")
        given = {}
        for f in fields(kind):
            if camel(f.name) in value:
                given[f.name] = _read(_hints(kind)[f.name], value[camel(f.name)])
            elif f.default is MISSING and f.default_factory is MISSING:
                raise ValueError(f"{kind.__name__}: no {camel(f.name)}")
        return kind(**given)
    if get_origin(kind) is list:
        if not isinstance(value, list):
            raise ValueError("not an array")
        return [_read(get_args(kind)[0], one) for one in value]
    if get_origin(kind) in (Union, types.UnionType):  # T | None
        return None if value is None else _read(get_args(kind)[0], value)
    if get_origin(kind) is dict:
        if not isinstance(value, dict):
            raise ValueError("not an object")
        return {name: _read(get_args(kind)[1], one) for name, one in value.items()}
    if kind is datetime:
        return datetime.fromisoformat(value)
    if kind in (int, float) and isinstance(value, (str, int, float)) and not isinstance(value, bool):
        return kind(value)  # attributes are strings
    if not isinstance(value, kind):
        raise ValueError(f"{value!r} is not a {kind.__name__}")
    return value

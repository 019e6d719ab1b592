"""A record as frames of pandas or polars, through ``bursar report --format json``."""

from __future__ import annotations

import importlib.util
import json
import os
from typing import TYPE_CHECKING, Any, Callable, Dict, Generic, List, Literal, Mapping, Optional, TypeVar, Union, overload

from ._command import BursarError, ask

if TYPE_CHECKING:
    import pandas
    import polars

Frame = TypeVar("Frame")
Rows = List[Dict[str, Any]]

_SERIES = ["run", "name", "unit", "pid", "start_ticks", "t_seconds", "value", "source"]
_CURVE = ["run", "limit_bytes", "refault_bytes"]
_WATCH = ["t_seconds", "bytes", "misses_per_second"]
_HELD = ["run", "component", "peak_bytes", "peak_rss_bytes", "at_end_bytes"]


class Record(Generic[Frame]):
    """One record. Each frame is made when it is asked for; without rows it has its columns all the same."""

    def __init__(self, content: Mapping[str, Any], frame: Callable[[Rows, List[str]], Frame]) -> None:
        #: All of the record, as ``bursar report --format json`` writes it.
        self.content = content
        self._frame = frame

    @property
    def header(self) -> Mapping[str, Any]:
        """Where and when: host, kernel, command, and more."""
        return self.content["header"]

    @property
    def complete(self) -> bool:
        """Whether the writer came to its end."""
        return self.content["complete"]

    @property
    def series(self) -> Frame:
        """All figures over time, a value per row. ``pid`` is null in those of the whole job."""
        rows = []
        for run in self.content["runs"]:
            for line in run["series"]:
                process = line["process"] or {}
                for t_ns, value in line["points"]:
                    fixed = (run["run"], line["name"], line["unit"], process.get("pid"), process.get("start_ticks"))
                    rows.append(dict(zip(_SERIES, (*fixed, t_ns / 1e9, value, line["rung"]))))
        return self._frame(rows, _SERIES)

    @property
    def processes(self) -> Frame:
        """A row per process: its life, its own peak, faults and CPU time."""
        rows: Rows = []
        for run in self.content["runs"]:
            for process in run["processes"]:
                plain = {name: value for name, value in process.items() if not isinstance(value, (dict, list))}
                rows.append({"run": run["run"], **process["key"], **plain})
        return self._frame(rows, ["run", "pid", "start_ticks"])

    @property
    def curve(self) -> Frame:
        """What more memory saves: bytes of files read again at each limit; of ``bursar watch``, misses by memory size."""
        if self.content.get("pages"):
            rows = [
                {"t_seconds": interval["t_ns"] / 1e9, **point}
                for interval in self.content["pages"]
                for point in interval["misses"]
            ]
            return self._frame(rows, _WATCH)
        rows = [
            {"run": run["run"], **point} for run in self.content["runs"] for point in _points(run["file_demand"])
        ]
        return self._frame(rows, _CURVE)

    @property
    def trials(self) -> Frame:
        """Of ``bursar budget``: a row per run, in order."""
        return self._frame([_flat(row) for row in self.content["trials"] or []], ["run", "limit_bytes", "outcome"])

    @property
    def methods(self) -> Frame:
        """Of ``bursar budget``: what the usual methods give."""
        budget = self.content["budget"] or {}
        return self._frame([_flat(row) for row in budget.get("methods", [])], ["name", "memory_bytes"])

    @property
    def attribution(self) -> Frame:
        """Of ``bursar attribute``: a row per component, and ``total`` and ``unattributed``."""
        rows: Rows = []
        for found in self.content["attributions"] or []:
            lines = {**found["components"], "unattributed": found["unattributed"], "total": found["total"]}
            for name, line in lines.items():
                rows.append({"run": found["run"], "component": name, **_flat(line)})
        return self._frame(rows, _HELD)


def _points(demand: Optional[Mapping[str, Any]]) -> Rows:
    return [] if demand is None else demand["points"]


def _flat(row: Mapping[str, Any]) -> Dict[str, Any]:
    return {name: value for name, value in row.items() if not isinstance(value, (dict, list))}


def _pandas(rows: Rows, columns: List[str]) -> Any:
    import pandas

    return pandas.DataFrame(rows) if rows else pandas.DataFrame(columns=columns)


def _polars(rows: Rows, columns: List[str]) -> Any:
    import polars

    return polars.DataFrame(rows, infer_schema_length=None) if rows else polars.DataFrame(schema=columns)


_MAKERS = {"pandas": _pandas, "polars": _polars}


@overload
def read(path: Union[str, "os.PathLike[str]"], frames: Literal["pandas"]) -> "Record[pandas.DataFrame]": ...
@overload
def read(path: Union[str, "os.PathLike[str]"], frames: Literal["polars"]) -> "Record[polars.DataFrame]": ...
@overload
def read(path: Union[str, "os.PathLike[str]"], frames: None = None) -> "Record[Any]": ...
def read(path: Union[str, "os.PathLike[str]"], frames: Optional[str] = None) -> "Record[Any]":
    """Reads a record of any command of bursar.

    Args:
        frames: ``"pandas"`` or ``"polars"``; by default the first of them that is installed.

    Raises:
        BursarError: it is no record, or neither library is installed.
    """
    if frames is None:
        frames = next((name for name in _MAKERS if importlib.util.find_spec(name)), None)
        if frames is None:
            raise BursarError("frames need pandas or polars: pip install pandas")
    if frames not in _MAKERS:
        raise ValueError(f"frames is 'pandas' or 'polars', not {frames!r}")
    content = json.loads(ask(["report", "--format", "json", "--", os.fspath(path)]))
    return Record(content, _MAKERS[frames])

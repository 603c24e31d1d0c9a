"""Past outcomes in a file, as the history that a campaign begins with.

A row is one outcome: the arm, its reward and its cost; so is a row of `campaign export`. With a column ``pulls`` a row
has that number of outcomes, with their total reward and total cost. Rows without a reward or a cost are left out, since
nothing can be learned from them.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from budgetbandits.errors import BadParameter


def read_history(path: Path) -> dict[str, tuple[int, float, float]]:
    """The pulls, the total reward and the total cost of each arm in a .csv or .parquet file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "past.csv")
    ...     _ = file.write_text("arm,reward,cost\\nmail,1,0.25\\nmail,0,0.5\\nsearch,,0.5\\n")
    ...     read_history(file)
    {'mail': (2, 1.0, 0.75)}
    """
    from budgetbandits.off_policy.log import table_columns

    table = table_columns(path)
    missing = [name for name in ("arm", "reward", "cost") if name not in _names(table)]
    if missing:
        raise BadParameter(
            f"{path}: there is no column {missing[0]!r}; name columns arm, reward and cost, and pulls if any"
        )
    names = [*("arm", "reward", "cost"), *(["pulls"] if "pulls" in _names(table) else [])]
    sums: dict[str, tuple[list[float], list[float], list[float]]] = {}
    for row, cells in enumerate(zip(*(list(table[name]) for name in names), strict=True), 1):
        if any(cell is None or cell == "" for cell in cells):
            continue
        reward, cost, pulls = (_number(path, row, cell) for cell in (*cells[1:], 1.0)[:3])
        for total, value in zip(sums.setdefault(str(cells[0]), ([], [], [])), (pulls, reward, cost), strict=True):
            total.append(value)
    if not sums:
        raise BadParameter(f"{path}: no row has an arm, a reward and a cost; leave history out")
    return {
        arm: (int(math.fsum(pulls)), math.fsum(rewards), math.fsum(costs))
        for arm, (pulls, rewards, costs) in sums.items()
    }


def _names(table: Any) -> list[str]:
    return list(table if isinstance(table, dict) else table.columns)


def _number(path: Path, row: int, cell: Any) -> float:
    try:
        value = float(cell)
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        raise BadParameter(f"{path}, row {row}: {cell!r:.40} is no number; fix that row")
    return value

"""Put counts of drawn runs where plans are looked up, src/inca/planning/level_tables.json; see `tools/level_draws.py`.

    python tools/level_tables.py counts.jsonl

Besides, it draws what leavers need, and samples runs without one of the final messages; neither needs a GPU.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from inca._base.types import Array
from inca.planning.leavers import leaver_bounds
from inca.protocol.injection import Injection
from level_draws import FACTORS, LEVELS_PER_FACTOR, NAMES, QUIET, TABLES, Setting

LEAVING = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
LEAVERS, LEAVERS_BATCH, LEAVERS_PARTIES = 10_000_000, 100_000, (10, 50)


def pack(paths: list[Path]) -> None:
    """Add counts to the file that plans are looked up in, and what leavers need and leave where that is missing."""
    from inca.planning.designs import ProtocolDesign
    from inca.planning.sampling import sample_residue

    before = json.loads(TABLES.read_text())
    tables = before["tables"] + [json.loads(line) for path in paths for line in path.read_text().splitlines()]
    tables = [asdict(Setting(**{name: row[name] for name in NAMES if name in row})) | row for row in tables]
    tables.sort(key=lambda row: [row[name] for name in (*NAMES, "seed")])
    residues = before["residues"]
    for rounds in sorted({row["rounds"] for row in tables if str(row["rounds"]) not in residues}):
        design = ProtocolDesign("permutation", rounds, quiet=QUIET)
        residues[str(rounds)] = [round(sample_residue(design, 100, part, runs=400), 3) for part in LEAVING]
        print(f"{rounds} rounds: {residues[str(rounds)]}")
    head = {"format": "inca-level-tables/2", "made_by": "python tools/level_tables.py", "quiet": QUIET}
    head |= {"factors": FACTORS, "levels_per_factor": LEVELS_PER_FACTOR, "leaving": LEAVING, "residues": residues}
    plain = {(row["rounds"], row["known"]) for row in tables if (row["receivers"], row["eavesdropped"]) == (1, 0.0)}
    leavers = count_leavers(before["leavers"], sorted(plain))
    body, rest = (",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) for rows in (tables, leavers))
    TABLES.write_text(f'{json.dumps(head)[:-1]}, "tables": [\n{body}\n],\n"leavers": [\n{rest}\n]}}\n')


def count_leavers(before: list[dict[str, Any]], entries: list[tuple[int, float]]) -> list[dict[str, Any]]:
    """Draw how much leavers need (docs/settlement.md), for all (rounds, known) that are not counted yet."""
    from inca import incremental_injection

    done = {(row["parties"], row["rounds"], row["known"]) for row in before}
    rows = list(before)
    for parties in LEAVERS_PARTIES:
        for rounds, known in entries:
            if (parties, rounds, known) in done:
                continue
            rng, exceeding = np.random.default_rng((parties, rounds)), np.zeros(len(LEVELS_PER_FACTOR), dtype=np.int64)
            for _ in range(LEAVERS // LEAVERS_BATCH):
                drawn = np.sort(
                    draw_leaver_bounds(parties, known, incremental_injection(rounds, quiet=QUIET), LEAVERS_BATCH, rng)
                )
                exceeding += LEAVERS_BATCH - np.searchsorted(drawn, LEVELS_PER_FACTOR, side="right")
            views = LEAVERS // LEAVERS_BATCH * LEAVERS_BATCH
            row = {"parties": parties, "rounds": rounds, "known": known, "views": views}
            rows.append(row | {"exceeding": exceeding.tolist()})
            print(f"leavers: {rows[-1]}", flush=True)
    return rows


def draw_leaver_bounds(parties: int, known: float, injection: Injection, count: int, rng: np.random.Generator) -> Array:
    """Draw bounds of leavers of runs with one receiver a round, uniform among the others.

    `known` is the fraction of the parties that colludes or leaves, the drawn leaver among them.

    >>> from inca import incremental_injection
    >>> drawn = draw_leaver_bounds(50, 0.3, incremental_injection(20, quiet=1), 1000, np.random.default_rng(1))
    >>> bool(drawn.max() < 7.2), round(float(np.median(drawn)), 1)
    (True, 0.7)
    """
    others = parties - 1
    unknown = parties - int(np.ceil(known * parties - 1e-9))
    receivers = rng.integers(others, size=(count, injection.rounds))
    return leaver_bounds(receivers, receivers < unknown, injection)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("counts", type=Path, nargs="+", help="files of tools/level_draws.py")
    paths: list[Path] = parser.parse_args().counts
    for path in paths:
        if not path.is_file():
            parser.error(f"counts must be files that tools/level_draws.py wrote, got {path}, which is no file")
    pack(paths)


if __name__ == "__main__":
    main()

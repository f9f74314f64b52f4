"""Draw many settled runs on a GPU, and count how many parties need more cancelling noise than each level.

    python tools/level_tables.py --rounds 10 --known 0.3 --parties 50 --views 10000000 --out counts.jsonl
    python tools/level_tables.py --check
    python tools/level_tables.py --pack counts.jsonl

The last one needs no GPU: it writes src/inca/planning/level_tables.json, which plans are looked up in, from all counts
and from sampled runs with one late leaver.

A run is one of the permutation schedule with one receiver and the incremental injection; some parties are known to the
adversary with all that they exchange, as colluders are, or leavers in the bound of docs/settlement.md. The *level* is
sigma_cancelling^2 in units of (sensitivity / mu)^2, the *factor* the independent variance of the honest ones together
over the least that Theorem 2 allows. A party needs more than a level if its exact loss (Theorem 1) exceeds mu there.

One factorisation tells all levels (fact F4): with C the covariance of the noisy values given what was observed, at one
ratio of the two kinds of noise and in units of sigma_independent, the losses at another ratio are
mu_i^2 = (rho [A^-1]_ii - 1) / (rho - 1), A = I + (rho - 1) C, rho the ratio of the squared ratios. C comes from the
filter of `inca.privacy._state_space`, for thousands of runs at a time. Needs PyTorch.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np

try:
    import torch
except ImportError:  # tests read the examples of all tools, and PyTorch is not needed for anything else
    torch: Any = None  # type: ignore[no-redef]

PACKED = Path(__file__).parents[1] / "src/inca/planning/level_tables.json"
LEAVING = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
QUIET = 1
LEAVERS, LEAVERS_BATCH, LEAVERS_PARTIES = 10_000_000, 100_000, (10, 50)
FACTORS = (1.02, 1.05, 1.1, 1.15, 1.2, 1.3, 1.5, 2.0)
LEVELS_PER_FACTOR = tuple(0.05 * 2.0 ** (k / 4) for k in range(44))  # levels are these times the factor
Tensor = Any  # torch.Tensor, whose stubs are not everywhere


def draw_receivers(views: int, rounds: int, parties: int, generator: Tensor) -> Tensor:
    """Return uniformly random permutations without fixed points, (views, rounds, parties)."""
    device = generator.device
    everyone = torch.arange(parties, device=device)
    out = torch.empty((views * rounds, parties), dtype=torch.int64, device=device)
    left = torch.arange(views * rounds, device=device)
    while left.numel():
        drawn = torch.rand((left.numel(), parties), generator=generator, device=device).argsort(dim=1)
        out[left] = drawn
        left = left[(drawn == everyone).any(dim=1)]
    return out.reshape(views, rounds, parties)


def remaining_covariance(receivers: Tensor, honest: int, quiet: int, ratio_squared: float) -> Tensor:
    """Return the covariance of the honest parties' noisy values given what is known, (views, honest, honest).

    Honest are parties 0..honest-1. Everything is in units of sigma_independent.
    """
    views, rounds, _ = receivers.shape
    device, double = receivers.device, torch.float64
    value = [1.0 / (rounds + 1 - quiet)] * (rounds + 1 - quiet) + [0.0] * quiet
    eye = torch.eye(honest, dtype=double, device=device)
    uu = eye.repeat(views, 1, 1)
    uz = value[0] * uu
    zz = value[0] ** 2 * uu
    for t in range(rounds):
        to = receivers[:, t, :honest]
        hidden = to < honest
        most = int((~hidden).sum(dim=1).max())
        if most:  # the known messages come first, and hidden ones that fill up have no covariance with anything
            order = (~hidden).to(torch.int8).argsort(dim=1, descending=True, stable=True)[:, :most]
            known = (~hidden).gather(1, order).to(double)
            columns = order.unsqueeze(1).expand(views, honest, most)
            cross_u = uz.gather(2, columns) * known.unsqueeze(1)
            cross_z = zz.gather(2, columns) * known.unsqueeze(1)
            rows = order.unsqueeze(2).expand(views, most, most)
            covariance = cross_z.gather(1, rows) * known.unsqueeze(2)
            covariance += torch.diag_embed(known * ratio_squared + (1.0 - known))
            root = torch.linalg.cholesky(covariance)
            both = torch.cat([cross_u, cross_z], dim=1)
            both = torch.linalg.solve_triangular(root.mT, both, upper=True, left=False)
            gain_u, gain_z = both[:, :honest], both[:, honest:]
            uu = torch.baddbmm(uu, gain_u, gain_u.mT, alpha=-1.0)
            uz = torch.baddbmm(uz, gain_u, gain_z.mT, alpha=-1.0)
            zz = torch.baddbmm(zz, gain_z, gain_z.mT, alpha=-1.0)
        moves = 0.5 * hidden.to(double)
        change = torch.diag_embed(-moves)
        change.scatter_add_(1, torch.where(hidden, to, 0).unsqueeze(1), moves.unsqueeze(1))
        phi, share = change + eye, value[t + 1]
        uz_mixed, zz_mixed = uz @ phi.mT, phi @ zz @ phi.mT
        mixed_u = phi @ uz.mT
        zz = zz_mixed + share * (mixed_u + mixed_u.mT) + share**2 * uu + ratio_squared * (change @ change.mT)
        uz = uz_mixed + share * uu
    root = torch.linalg.cholesky(zz)
    gain = torch.linalg.solve_triangular(root.mT, uz, upper=True, left=False)
    return torch.baddbmm(uu, gain, gain.mT, alpha=-1.0)


def squared_losses(remaining: Tensor, ratio_squared: float, wanted: list[float]) -> Tensor:
    """Return mu_i^2 in units of sensitivity / sigma_independent, (ratios, views, honest), at other squared ratios."""
    honest = remaining.shape[-1]
    eye = torch.eye(honest, dtype=remaining.dtype, device=remaining.device)
    out = []
    for ratio in wanted:
        rho = ratio / ratio_squared
        root = torch.linalg.cholesky(eye + (rho - 1.0) * remaining)
        inverse = torch.linalg.solve_triangular(root, eye.expand_as(root), upper=False)
        out.append((rho * (inverse**2).sum(dim=1) - 1.0) / (rho - 1.0))
    return torch.stack(out)


def reference_ratio(honest: int) -> float:
    """Return the squared ratio at which runs are factored: between two levels of the table, for a middling one."""
    return honest * math.sqrt(LEVELS_PER_FACTOR[20] * LEVELS_PER_FACTOR[21])


def count(parties: int, rounds: int, quiet: int, known: float, views: int, batch: int, seed: int) -> dict[str, Any]:
    """Count, for every factor and level, the parties that need more, and the views in which party 0 does."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    generator = torch.Generator(device=device).manual_seed(seed)
    honest = parties - math.ceil(known * parties - 1e-9)
    ratios = [level * honest for level in LEVELS_PER_FACTOR]
    reference = reference_ratio(honest)
    limits = torch.tensor(FACTORS, dtype=torch.float64, device=device) / honest
    everyone = np.zeros((len(FACTORS), len(ratios)), dtype=np.int64)
    one = np.zeros_like(everyone)
    done, began = 0, time.monotonic()
    while done < views:
        size = min(batch, views - done)
        receivers = draw_receivers(size, rounds, parties, generator)
        losses = squared_losses(remaining_covariance(receivers, honest, quiet, reference), reference, ratios)
        for place, limit in enumerate(limits):
            exceeded = losses > limit
            everyone[place] += exceeded.sum(dim=(1, 2)).cpu().numpy()
            one[place] += exceeded[:, :, 0].sum(dim=1).cpu().numpy()
        done += size
    return {
        "parties": parties,
        "rounds": rounds,
        "quiet": quiet,
        "known": known,
        "honest": honest,
        "views": done,
        "seed": seed,
        "factors": FACTORS,
        "levels_per_factor": LEVELS_PER_FACTOR,
        "parties_exceeding": everyone.tolist(),
        "views_exceeding": one.tolist(),
        "seconds": round(time.monotonic() - began, 1),
    }


def pack(paths: list[Path]) -> None:
    """Add counts to the file that plans are looked up in, and sample anew what one late leaver leaves behind."""
    from inca.planning.designs import ProtocolDesign
    from inca.planning.sampling import sample_late_residue

    lines = [json.loads(line) for path in paths for line in path.read_text().splitlines()]
    for line in lines:
        if (line["quiet"], line["factors"], line["levels_per_factor"]) != (QUIET, [*FACTORS], [*LEVELS_PER_FACTOR]):
            raise SystemExit("all counts must have the same quiet rounds, factors and levels")
    kept = ("parties", "rounds", "known", "views", "seed", "views_exceeding")
    before = json.loads(PACKED.read_text()) if PACKED.exists() else {}
    tables = before.get("tables", [])
    tables += [{name: line[name] for name in kept} for line in lines]
    tables.sort(key=lambda table: (table["parties"], table["rounds"], table["known"], table["seed"]))
    residues = {}
    for rounds in sorted({table["rounds"] for table in tables}):
        design = ProtocolDesign("permutation", rounds, quiet=QUIET)
        residues[str(rounds)] = [round(sample_late_residue(design, 100, part, runs=400), 3) for part in LEAVING]
        print(f"{rounds} rounds: {residues[str(rounds)]}")
    head = {"format": "inca-level-tables/1", "made_by": "python tools/level_tables.py", "quiet": QUIET}
    head |= {"factors": FACTORS, "levels_per_factor": LEVELS_PER_FACTOR, "leaving": LEAVING, "late_residues": residues}
    leavers = count_leavers(before.get("leavers", []), sorted({(table["rounds"], table["known"]) for table in tables}))
    body, rest = (",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) for rows in (tables, leavers))
    PACKED.write_text(f'{json.dumps(head)[:-1]}, "tables": [\n{body}\n],\n"leavers": [\n{rest}\n]}}\n')


def count_leavers(before: list[dict[str, Any]], entries: list[tuple[int, float]]) -> list[dict[str, Any]]:
    """Draw how much leavers need (docs/settlement.md), for all (rounds, known) that are not counted yet."""
    from inca import incremental_injection
    from inca.planning.leavers import draw_leaver_bounds

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


def check() -> None:
    """Hold losses against the exact accountant, on runs of several sizes."""
    import inca

    device = "cuda" if torch.cuda.is_available() else "cpu"
    generator = torch.Generator(device=device).manual_seed(1)
    for parties, rounds, quiet, known in ((12, 5, 1, 2), (20, 8, 2, 6), (50, 10, 2, 15)):
        honest = parties - known
        reference, wanted = reference_ratio(honest), [0.4 * honest, 3.0 * honest]
        receivers = draw_receivers(3, rounds, parties, generator)
        losses = squared_losses(remaining_covariance(receivers, honest, quiet, reference), reference, wanted).cpu()
        for view in range(3):
            schedule = inca.ExplicitSchedule(receivers[view].cpu().numpy()[:, :, np.newaxis], share=0.5)
            execution = inca.Execution(schedule, inca.incremental_injection(rounds, quiet=quiet))
            adversary = inca.Adversary(range(honest, parties))
            for place, ratio in enumerate(wanted):
                levels = inca.NoiseLevels(independent=1.0, cancelling=math.sqrt(ratio))
                exact = inca.account(inca.View(execution, adversary), levels, sensitivity=1.0).mu ** 2
                np.testing.assert_allclose(losses[place, view].numpy(), exact, rtol=1e-8)
    print("the losses are the exact accountant's")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parties", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--quiet", type=int, default=QUIET)
    parser.add_argument("--known", type=float, default=0.3, help="fraction colluding or leaving")
    parser.add_argument("--views", type=int, default=10_000_000)
    parser.add_argument("--batch", type=int, default=16_384)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="append the counts to this file, a line of JSON")
    parser.add_argument("--check", action="store_true", help="hold losses against the exact accountant, and end")
    parser.add_argument("--pack", type=Path, nargs="+", help="write the file of all tables from these files of counts")
    options = parser.parse_args()
    if options.pack:
        pack(options.pack)
        return
    if torch is None:
        parser.error("PyTorch must be installed")
    if options.check:
        check()
        return
    sizes = options.parties, options.rounds, options.quiet, options.known, options.views, options.batch, options.seed
    counts = count(*sizes)
    print(f"{counts['views'] / counts['seconds']:.0f} views a second")
    if options.out is not None:
        with options.out.open("a") as file:
            file.write(json.dumps(counts) + "\n")


if __name__ == "__main__":
    main()

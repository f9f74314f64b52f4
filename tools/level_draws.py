"""Draw many settled runs on a GPU, and count in how many of them a party needs more cancelling noise than each level.

    python tools/level_draws.py --check
    python tools/level_draws.py --missing --minutes 9 --out counts.jsonl
    python tools/level_draws.py --rounds 10 --known 0.3 --views 10000000 --out counts.jsonl

`tools/level_tables.py counts.jsonl` then puts the counts where plans look them up; it needs no GPU.

In a run some parties are known to the adversary with all that they exchange, as colluders are, or leavers in the bound
of docs/settlement.md, and of every round's messages some may be eavesdropped on. The *level* is sigma_cancelling^2 in
units of (sensitivity / mu)^2, the *factor* the independent variance of the honest ones together over the least that
Theorem 2 allows. A party needs more than a level if its exact loss (Theorem 1) exceeds mu there.

For views of half a run (docs/planner.md) the adversary is also told all messages of every other round.

One filter tells all levels (fact F4): with C the covariance of the noisy values given what was observed, at one ratio
of the two kinds of noise and in units of sigma_independent, the losses at another ratio are
mu_i^2 = (rho [A^-1]_ii - 1) / (rho - 1), A = I + (rho - 1) C, rho the ratio of the squared ratios. C comes from the
filter of `inca.privacy._state_space`, for thousands of runs at a time; [A^-1]_ii from C's tridiagonal form that starts
at party i. Needs PyTorch.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

try:
    import torch
except ImportError:  # tests read the examples of all tools, and PyTorch is not needed for anything else
    torch: Any = None  # type: ignore[no-redef]

TABLES = Path(__file__).parents[1] / "src/inca/planning/level_tables.json"
QUIET = 1
FACTORS = (1.02, 1.05, 1.1, 1.15, 1.2, 1.3, 1.5, 2.0)
LEVELS_PER_FACTOR = tuple(0.05 * 2.0 ** (k / 4) for k in range(44))  # levels are these times the factor
_MOST_PARTIES = 50  # of which views are drawn that are missing
_BATCH = 20_000
_MANY, _FEW = 1_000_000, 500_000  # views of half a run, without and with eavesdroppers or a second receiver
TOLD = ("none", "even", "odd")
Tensor = Any  # torch.Tensor, whose stubs are not everywhere


@dataclass(frozen=True)
class Setting:
    """What runs are drawn of; the adversary is also told all messages of the even rounds, of the odd ones, or none."""

    parties: int
    rounds: int
    known: float
    receivers: int = 1
    eavesdropped: float = 0.0
    told: str = "none"

    @property
    def honest(self) -> int:
        """How many parties are not known."""
        return self.parties - math.ceil(self.known * self.parties - 1e-9)

    def hides(self, t: int) -> bool:
        """Return whether a message of round t may be hidden."""
        return self.told != ("even", "odd")[t % 2]


NAMES = tuple(field.name for field in fields(Setting))


def missing(tables: Path) -> Iterator[tuple[Setting, int]]:
    """Yield all settings of the tables that have not been drawn, with the number of runs."""
    entries = json.loads(tables.read_text())["tables"]
    done = {Setting(**{name: entry[name] for name in NAMES}) for entry in entries}
    plain = {replace(setting, told="none") for setting in done if setting.parties <= _MOST_PARTIES}
    plain |= {
        Setting(50, rounds, known, 1, eavesdropped)
        for eavesdropped in (0.1, 0.2, 0.3)
        for known in (0.0, 0.1, 0.2, 0.3, 0.5)
        for rounds in (10, 14, 20, 30)
    }
    plain |= {Setting(50, rounds, known, 2) for known in (0.0, 0.1, 0.2, 0.3) for rounds in (6, 8, 10, 14, 20)}
    plain |= {Setting(parties, 20, 0.2, 1, 0.1) for parties in (10, 20)}
    plain |= {Setting(parties, 10, 0.2, 2) for parties in (10, 20)}
    for setting in sorted(plain, key=lambda one: (one.receivers, one.eavesdropped, -one.parties, one.rounds)):
        views = _MANY if (setting.receivers, setting.eavesdropped) == (1, 0.0) else _FEW
        for told in TOLD[1:]:
            if replace(setting, told=told) not in done:
                yield replace(setting, told=told), views


def draw_receivers(setting: Setting, runs: int, generator: Tensor) -> Tensor:
    """Return whom everybody sends to, (runs, rounds, parties, receivers): permutations, or uniformly random others."""
    parties, device = setting.parties, generator.device
    everyone = torch.arange(parties, device=device)
    if setting.receivers > 1:
        shape = (runs, setting.rounds, parties, parties - 1)
        others = torch.rand(shape, generator=generator, device=device).topk(setting.receivers, dim=3).indices
        return others + (others >= everyone[:, None])
    out = torch.empty((runs * setting.rounds, parties), dtype=torch.int64, device=device)
    left = torch.arange(runs * setting.rounds, device=device)
    while left.numel():  # until nobody sends to itself
        drawn = torch.rand((left.numel(), parties), generator=generator, device=device).argsort(dim=1)
        out[left] = drawn
        left = left[(drawn == everyone).any(dim=1)]
    return out.reshape(runs, setting.rounds, parties, 1)


def draw_hidden(setting: Setting, receivers: Tensor, generator: Tensor) -> Tensor:
    """Return which messages of honest parties the adversary does not know, (runs, rounds, honest)."""
    runs, rounds, parties, _ = receivers.shape
    hidden = (receivers[:, :, : setting.honest] < setting.honest).all(dim=3)
    heard = math.ceil(setting.eavesdropped * parties - 1e-9)  # of every round, as `inca.Adversary.random` does
    if heard:
        places = torch.rand((runs, rounds, parties), generator=generator, device=generator.device).argsort(dim=2)
        hidden &= places[:, :, : setting.honest] >= heard
    hidden[:, [not setting.hides(t) for t in range(rounds)]] = False
    return hidden


def remaining_covariance(setting: Setting, receivers: Tensor, hidden: Tensor, ratio_squared: float) -> Tensor:
    """Return the covariance of the honest parties' noisy values u given what is known, (runs, honest, honest).

    z is what parties hold. Known messages are conditioned on; hidden ones move a share of z and of their masks. In the
    end all z are known. Everything is in units of sigma_independent.
    """
    runs, rounds, honest = hidden.shape
    new = {"dtype": torch.float64, "device": hidden.device}
    shares, share = rounds + 1 - QUIET, 1.0 / (setting.receivers + 1)
    value = [1.0 / shares] * shares + [0.0] * QUIET
    eye = torch.eye(honest, **new)
    uu = eye.repeat(runs, 1, 1)
    uz, zz = value[0] * uu, value[0] ** 2 * uu
    for t in range(rounds):
        uu, uz, zz = _given_messages(uu, uz, zz, ~hidden[:, t], ratio_squared)
        if setting.hides(t):
            moves = share * hidden[:, t].to(torch.float64)
            change = torch.diag_embed(-setting.receivers * moves)
            for slot in range(setting.receivers):
                to = torch.where(hidden[:, t], receivers[:, t, :honest, slot], 0)
                change.scatter_add_(1, to.unsqueeze(1), moves.unsqueeze(1))
            mixing = change + eye
            uz, zz = uz @ mixing.mT, mixing @ zz @ mixing.mT
            zz = torch.baddbmm(zz, change, change.mT, alpha=ratio_squared)
        part = value[t + 1]
        zz = zz + part * (uz + uz.mT) + part**2 * uu
        uz = uz + part * uu
    root = torch.linalg.cholesky(zz)
    gain = torch.linalg.solve_triangular(root.mT, uz, upper=True, left=False)
    return torch.baddbmm(uu, gain, gain.mT, alpha=-1.0)


def _given_messages(uu: Tensor, uz: Tensor, zz: Tensor, known: Tensor, noise: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return the covariances given the known messages of a round, (runs, honest), each z with a mask."""
    runs, honest = known.shape
    most = int(known.sum(dim=1).max())
    if most == 0:
        return uu, uz, zz
    # The known ones come first, and hidden ones that fill up have no covariance with anything.
    order = known.to(torch.int8).argsort(dim=1, descending=True, stable=True)[:, :most]
    chosen = known.gather(1, order).to(uu.dtype)
    columns = order.unsqueeze(1).expand(runs, honest, most)
    cross_u, cross_z = (cross.gather(2, columns) * chosen.unsqueeze(1) for cross in (uz, zz))
    covariance = cross_z.gather(1, order.unsqueeze(2).expand(runs, most, most)) * chosen.unsqueeze(2)
    covariance += torch.diag_embed(chosen * noise + (1.0 - chosen))
    root = torch.linalg.cholesky(covariance)
    gains = torch.linalg.solve_triangular(root.mT, torch.cat([cross_u, cross_z], dim=1), upper=True, left=False)
    gain_u, gain_z = gains[:, :honest], gains[:, honest:]
    pairs = ((uu, gain_u, gain_u), (uz, gain_u, gain_z), (zz, gain_z, gain_z))
    less_u, less_uz, less_z = (torch.baddbmm(before, one, other.mT, alpha=-1.0) for before, one, other in pairs)
    return less_u, less_uz, less_z


def squared_losses(remaining: Tensor, ratio_squared: float, wanted: list[float]) -> Tensor:
    """Return party 0's mu^2 in units of sensitivity / sigma_independent, (ratios, runs), at other squared ratios.

    Lanczos' tridiagonal form of the covariance that starts at party 0 makes [A^-1]_00 a continued fraction.
    """
    runs, honest, _ = remaining.shape
    new = {"dtype": remaining.dtype, "device": remaining.device}
    basis, diagonal, beside = torch.zeros((runs, honest, honest), **new), [], []
    basis[:, 0, 0] = 1.0
    for step in range(honest):
        vector = basis[:, step]
        image = torch.bmm(remaining, vector.unsqueeze(2)).squeeze(2)
        diagonal.append((image * vector).sum(dim=1))
        if step == honest - 1:
            break
        known = basis[:, : step + 1]
        for _ in range(2):  # once leaves rounding errors that grow
            image = image - torch.bmm(torch.bmm(known, image.unsqueeze(2)).mT, known).squeeze(1)
        square = (image * image).sum(dim=1)
        goes_on = square > 1e-24
        beside.append(torch.where(goes_on, square, 0.0))
        scale = torch.where(goes_on, torch.rsqrt(square.clamp_min(1e-300)), 0.0)
        basis[:, step + 1] = image * scale.unsqueeze(1)
    rho = torch.tensor(wanted, **new).unsqueeze(1) / ratio_squared
    fraction = 1.0 + (rho - 1.0) * diagonal[-1]
    for entry, square in zip(reversed(diagonal[:-1]), reversed(beside), strict=True):
        fraction = 1.0 + (rho - 1.0) * entry - (rho - 1.0) ** 2 * square / fraction
    return (rho / fraction - 1.0) / (rho - 1.0)


def reference_ratio(honest: int) -> float:
    """Return the squared ratio at which runs are filtered: between two levels of the table, for a middling one."""
    return honest * math.sqrt(LEVELS_PER_FACTOR[20] * LEVELS_PER_FACTOR[21])


def count(setting: Setting, views: int, seed: int) -> dict[str, Any]:
    """Count, for every factor and level, the runs in which party 0 needs more."""
    device = "cuda"
    generator = torch.Generator(device=device).manual_seed(seed)
    honest, reference = setting.honest, reference_ratio(setting.honest)
    limits = torch.tensor(FACTORS, dtype=torch.float64, device=device) / honest
    counts = torch.zeros((len(FACTORS), len(LEVELS_PER_FACTOR)), dtype=torch.int64, device=device)
    for done in range(0, views, _BATCH):
        runs = min(_BATCH, views - done)
        receivers = draw_receivers(setting, runs, generator)
        hidden = draw_hidden(setting, receivers, generator)
        covariance = remaining_covariance(setting, receivers, hidden, reference)
        losses = squared_losses(covariance, reference, [level * honest for level in LEVELS_PER_FACTOR])
        for place, limit in enumerate(limits):
            counts[place] += (losses > limit).sum(dim=1)
    return asdict(setting) | {"views": views, "seed": seed, "views_exceeding": counts.tolist()}


def check() -> None:
    """Hold losses against the exact accountant, on runs of several sizes and kinds."""
    import inca

    generator = torch.Generator(device="cuda").manual_seed(1)
    for setting in (
        Setting(12, 5, 2 / 12),
        Setting(20, 8, 0.3, told="odd"),
        Setting(50, 10, 0.3, eavesdropped=0.1),
        Setting(50, 20, 0.0, eavesdropped=0.3, told="even"),
        Setting(20, 8, 0.2, receivers=2),
        Setting(50, 12, 0.1, receivers=2, eavesdropped=0.05, told="even"),
    ):
        honest, rounds = setting.honest, setting.rounds
        reference, wanted = reference_ratio(honest), [0.4 * honest, 3.0 * honest]
        receivers = draw_receivers(setting, 3, generator)
        hidden = draw_hidden(setting, receivers, generator)
        losses = squared_losses(remaining_covariance(setting, receivers, hidden, reference), reference, wanted).cpu()
        for view in range(3):
            schedule = inca.ExplicitSchedule(receivers[view].cpu().numpy(), share=1.0 / (setting.receivers + 1))
            execution = inca.Execution(schedule, inca.incremental_injection(rounds, quiet=QUIET))
            heard = [(t, i) for t in range(rounds) for i in range(honest) if not hidden[view, t, i]]
            adversary = inca.Adversary(range(honest, setting.parties), heard)
            for place, ratio in enumerate(wanted):
                levels = inca.NoiseLevels(independent=1.0, cancelling=math.sqrt(ratio))
                exact = inca.account(inca.View(execution, adversary), levels, sensitivity=1.0).mu[0] ** 2
                np.testing.assert_allclose(losses[place, view].item(), exact, rtol=1e-8)
    print("the losses are the exact accountant's")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parties", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--receivers", type=int, default=1)
    parser.add_argument("--known", type=float, default=0.3, help="fraction colluding or leaving")
    parser.add_argument("--eavesdropped", type=float, default=0.0, help="fraction of every round's messages")
    parser.add_argument("--told", choices=TOLD, default="none", help="rounds of which the adversary knows all messages")
    parser.add_argument("--views", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--missing", action="store_true", help="draw what the tables do not have")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin nothing after so many")
    parser.add_argument("--out", type=Path, help="append the counts to this file, a line of JSON each")
    parser.add_argument("--check", action="store_true", help="hold losses against the exact accountant, and end")
    options = parser.parse_args()
    if torch is None or not torch.cuda.is_available():
        parser.error("PyTorch must be installed, and there must be a GPU")
    if options.check:
        check()
        return
    one = (getattr(options, name) for name in NAMES)
    wanted = missing(TABLES) if options.missing else iter([(Setting(*one), options.views)])
    began = time.monotonic()
    for setting, views in wanted:
        start = time.monotonic()
        if start - began > 60 * options.minutes:
            break
        counts = count(setting, views, options.seed + zlib.crc32(str(setting).encode()))
        print(f"{views / (time.monotonic() - start):.0f} a second: {setting}", flush=True)
        if options.out is not None:
            with options.out.open("a") as file:
                file.write(json.dumps(counts) + "\n")


if __name__ == "__main__":
    main()

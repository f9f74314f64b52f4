"""Plans, the end of a session, and different opinions on who left, from 50 parties to 10^9. Prints tables.

python benchmarks/growth.py plans        the plan at each size: rounds, noise, error, bytes, seconds (seconds)
python benchmarks/growth.py audit        exact losses of runs of the plans, to 10^6 parties (a quarter of an hour)
python benchmarks/growth.py end          bytes of the end of a session, today and beyond (a minute)
python benchmarks/growth.py different    error and loss if parties differ in whom they take for gone (5 minutes)
python benchmarks/growth.py picture      writes docs/pictures/growth.png
"""

from __future__ import annotations

import math
import resource
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.different_cohorts import Beliefs, all_beliefs, expected_error, losses
from benchmarks.session_bytes import beyond, counted, rounds_bytes, today

import inca
from inca._base.palette import BASELINE, CANCELLING, COLLUDER, DATA, OWN
from inca._base.plotting import OTHER_WIDTH, OWN_WIDTH, LineEnd, canvas, caption, headline, label_ends, look, save
from inca.errors import InvalidInput
from inca.mechanisms.secure_aggregation import SecureAggregation
from inca.network.lattice.fixed_point import granularity_for
from inca.privacy.gaussian import epsilon_for

ROOT = Path(__file__).parents[1]
SIZES = (50, 1000, 10**6, 10**9)
ROUNDS, DIMENSION = 6, 1  # what a tenth and a tenth need up to a billion parties
OF_MANY = 8  # parties of each kind whose losses are worked out where those of all would take days


def required(parties: int, dropout: float = 0.1, *, delta: float = 1e-5, failure: float = 1e-6) -> inca.Requirements:
    return inca.Requirements(parties, epsilon=1.0, delta=delta, colluding=0.1, dropout=dropout, failure=failure)


def working(text: str) -> None:
    """Say on the terminal what is being worked on."""
    print(f"  {text} ...", end="\r", file=sys.stderr, flush=True)


def written(parties: int) -> str:
    """Return a number of parties as short as it is clear."""
    return f"{parties:,}" if parties < 10**6 else f"10^{round(math.log10(parties))}"


# --- plans ----------------------------------------------------------------------------------------------------------


def plans() -> None:
    print(
        "epsilon 1, a tenth colluding, a tenth leaving; errors as multiples of Central DP's with everyone present, of"
    )
    print("which Local DP's is n; lattice: how many steps sigma_ind has in int64 numbers of the networked party; sent:")
    print("bytes that a party sends in all rounds, with one coordinate")
    ideal = SecureAggregation(required(10**6)).expected_error(0.1).budget.noise / required(10**6).central_mse
    print(f"noise of an ideal secure aggregation with as many colluders and leavers: {ideal:.3f}")
    for name, any_of, small in (
        ("delta 1e-5; may fail for a party with probability 1e-6", False, False),
        ("delta 1e-5; for any of the n parties with 1e-6: 1e-6 / n each", True, False),
        ("delta 1e-5 / n; for any of the n parties with 1e-6", True, True),
    ):
        print(name)
        print("     n   T sigma_ind sigma_canc  noise  lost values  lattice  sent  seconds")
        for n in SIZES:
            requirements = required(n, delta=1e-5 / n if small else 1e-5, failure=1e-6 / n if any_of else 1e-6)
            start = time.perf_counter()
            plan = inca.plan(requirements)
            seconds, central = time.perf_counter() - start, requirements.central_mse
            print(
                f"{written(n):>6} {plan.design.rounds:3} {plan.noise_levels.independent:9.3g}  "
                f"{plan.noise_levels.cancelling:9.4g} {plan.budget.noise / central:6.3f} "
                f"{plan.budget.data / central:12.4g}  {lattice_of(plan):7} "
                f"{rounds_bytes(plan.design.rounds, DIMENSION):5}  {seconds:7.3f}",
                flush=True,
            )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"peak memory of all this {peak:.2f} GiB")


def audit() -> None:
    print("largest epsilon in one run of the plan for epsilon 1, a tenth left; the exact accountant, also for the")
    print(f"{OF_MANY} parties whose own messages are known most and {OF_MANY} others")
    for n in (200, 1000, 5000, 10**5, 10**6):
        working(f"{written(n)} parties")
        plan, rng = inca.plan(required(n)), np.random.default_rng(n)
        execution = plan.execution(n, inca.Presence.leaving(n, plan.design.rounds, 0.1, rng))
        start = time.perf_counter()
        view, everyone = inca.View(execution, plan.adversary(rng)), n <= 5000
        account = partial(inca.account, view, plan.noise_levels_of(execution), sensitivity=1.0)
        exposed, others = some_parties(view, rng)
        exact = account() if everyone else account(parties=np.concatenate([exposed, others]))
        epsilon = dict(zip(exact.honest.tolist(), exact.epsilon(plan.requirements.delta), strict=True))
        largest = [max(epsilon[int(party)] for party in of) for of in (exposed, others)]
        text = f"{max(epsilon.values()):7.4f}" if everyone else "      -"
        text += "".join(f"  {of:.4f}" for of in largest)
        print(f"{n:9,}  {text}  ({time.perf_counter() - start:.0f} s, {exact.method})", flush=True)


def some_parties(view: inca.View, rng: np.random.Generator) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return those honest parties who stay of whose own messages most are known, and as many others at random."""
    stayed = view.honest[view.active[-1, view.honest]]
    known = view.known_when_sent[:, stayed].sum(axis=0) + rng.random(stayed.size) / 2.0  # ties at random
    order = stayed[np.argsort(-known)]
    return order[:OF_MANY], rng.choice(order[OF_MANY:], OF_MANY, replace=False)


def lattice_of(plan: inca.Plan) -> str:
    """How many steps of the finest lattice that balances fit on the independent noise has, as a power of two."""
    try:
        parties, rounds = plan.requirements.parties, plan.design.rounds
        levels = replace(plan.noise_levels, topup=plan.topup.most(plan.requirements.survivors))
        step = granularity_for(levels, 1.0, parties, rounds)
    except InvalidInput:
        return "refused"
    return f"2^{math.floor(math.log2(plan.noise_levels.independent / step) + 1e-9)}"


# --- the end of a session -------------------------------------------------------------------------------------------


def amount(count: float) -> str:
    """Return a number of bytes as people write it.

    >>> amount(680), amount(2.5e6)
    ('680 B', '2.5 MB')
    """
    for unit, size in (("EB", 1e18), ("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} B"


def end() -> None:
    for dimension in (1, 1000):
        print(f"bytes at a party, T = {ROUNDS}, d = {dimension:,}; everyone is there, every item comes once")
        print("      n   rounds   digests decisions proposer |  S as bits partners     tree delays")
        print("                      etc.              sends |")
        for n in (100, 1000, 10**4, 10**6, 10**9):
            now, then = today(n, ROUNDS, dimension), beyond(n, ROUNDS, dimension)
            print(
                f"{written(n):>7} {amount(rounds_bytes(ROUNDS, dimension)):>8}  {amount(now.words):>8}  "
                f"{amount(now.decisions):>8} {amount(now.proposer):>8} | {amount(then.bits):>10} "
                f"{amount(then.partners):>8} {amount(then.tree):>8} {then.tree_delays:6}"
            )
    print("received in simulated sessions of the real state machines (signatures of 16 bytes), T = 20, d = 1")
    for n in (12, 24, 48):
        working(f"a session of {n}")
        received = counted(n, ROUNDS, DIMENSION)
        ended = sum(count for name, count in received.items() if name not in ("Offer", "Ack"))
        least = today(n, ROUNDS, DIMENSION, signature=16)
        print(f"{n:9}  end {amount(ended):>8}, {ended / (least.words + least.decisions):.2f} times the formula's least")


# --- different opinions on who left ---------------------------------------------------------------------------------


def different(parties: int = 10**6) -> None:
    requirements = required(parties)
    plan, rng, central = inca.plan(requirements), np.random.default_rng(7), requirements.central_mse
    execution = plan.execution(7, inca.Presence.leaving(parties, plan.design.rounds, 0.1, rng))
    levels = plan.noise_levels_of(execution)
    print(f"n = {written(parties)}, T = {plan.design.rounds}, a tenth left; exact error over the noise of a drawn run")
    print(
        "as multiples of Central DP's, of which Local DP's is n; / agreed: standard deviation of the noise over that if"
    )
    print("all agree; weight off: how far the sum of weights is from that of the cohort, relatively")
    print("missed  doubted   one-sided       noise  / agreed  lost values  weight off")
    agreed = 0.0
    chances = (0.0, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
    for missed, doubted in [(chance, 0.0) for chance in chances] + [(0.0, chance) for chance in chances[1:7]]:
        working(f"missed {missed:g}, doubted {doubted:g}")
        outcome = expected_error(execution, levels, Beliefs(missed, doubted), requirements.value_variance)
        agreed = agreed or outcome.error.noise
        print(
            f"{missed:<7g} {doubted:<7g} {outcome.one_sided:11,} {outcome.error.noise / central:11.5g} "
            f"{math.sqrt(outcome.error.noise / agreed):9.4g} {outcome.error.data / central:12.4g} "
            f"{abs(outcome.weight / requirements.survivors - 1):11.1e}",
            flush=True,
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"peak memory {peak:.2f} GiB")
    told_twice()


def told_twice() -> None:
    """What the adversary learns if parties differ, or publish twice: exact losses of drawn views."""
    print("largest epsilon of anyone, by the exact accountant, planned for epsilon 1: of those who stay, of leavers")
    for parties, views in ((50, 20), (100, 10), (200, 3)):
        plan = inca.plan(required(parties))
        worst: dict[str, list[tuple[float, float]]] = {}
        for seed in range(views):
            working(f"{parties} parties, view {seed + 1} of {views}")
            for name, pair in view_losses(plan, seed).items():
                worst.setdefault(name, []).append(pair)
        print(f"{parties} parties, {views} views")
        for name, pairs in worst.items():
            stay, left = (epsilon_for(max(one), 1e-5) for one in zip(*pairs, strict=True))
            print(f"  {name:55} {float(stay):6.3f}  {float(left):6.3f}", flush=True)


def view_losses(plan: inca.Plan, seed: int) -> dict[str, tuple[float, float]]:
    """The largest loss of an honest party that stays, and of one that left, for each way to differ."""
    n, rng = plan.requirements.parties, np.random.default_rng((21, seed))
    execution = plan.execution(seed, inca.Presence.leaving(n, plan.design.rounds, plan.requirements.dropout, rng))
    levels, colluding = plan.noise_levels_of(execution), sorted(plan.adversary(rng).colluding)
    cohort = execution.cohort
    assert cohort is not None
    agree = all_beliefs(execution, Beliefs(seed=seed))
    # Somebody honest who publishes, and one that it sent to: what if they take each other, or all others, for gone?
    victim = next(party for party in np.flatnonzero(cohort).tolist() if party not in colluding)
    sent_to = [int(execution.sends(t).receivers[victim, 0]) for t in range(1, execution.rounds + 1)]
    partner = next((party for party in sent_to if cohort[party] and party not in {victim, *colluding}), victim)
    without, one_without, alone, half_alone = (agree.copy() for _ in range(4))
    without[:, victim] = True
    one_without[partner, victim] = True
    alone[victim] = True
    half_alone[victim] |= rng.random(n) < 0.5
    unaware = all_beliefs(execution, Beliefs(missed=1.0, seed=seed))
    no_topup = replace(levels, topup=0.0)
    cases = {
        "all agree": ([agree], levels),
        "all agree, but nobody tops up its noise": ([agree], no_topup),
        "each leaver missed by half of the parties": ([all_beliefs(execution, Beliefs(0.5, seed=seed))], levels),
        "nobody knows of any leaver, nor tops up its noise": ([unaware], no_topup),
        "each party doubted by 1 % of the others": ([all_beliefs(execution, Beliefs(0.0, 0.01, seed))], levels),
        "each party doubted by 10 % of the others": ([all_beliefs(execution, Beliefs(0.0, 0.1, seed))], levels),
        "one party takes half of the others for gone": ([half_alone], levels),
        "one party takes all others for gone": ([alone], levels),
        "published twice, before and after hearing of leavers": ([unaware, agree], levels),
        "twice by one party, with and without one that published": ([agree, one_without], levels),
        "twice by all, with and without one that published": ([agree, without], levels),
    }
    pairs = {}
    for name, (published, noise) in cases.items():
        mu = losses(execution, colluding, noise, published)
        stay = max(loss for party, loss in mu.items() if cohort[party])
        pairs[name] = (stay, max((loss for party, loss in mu.items() if not cohort[party]), default=0.0))
    return pairs


# --- the picture ----------------------------------------------------------------------------------------------------


def picture() -> None:
    # Tenths of them are whole numbers: others are rounded up to the next fraction that views were drawn for.
    sizes = [50, *(lead * 10**power for power in range(2, 9) for lead in (1, 2, 5)), 10**9]
    needs = [required(n, dropout=0.0) for n in sizes]
    settled = [inca.plan(each) for each in needs]
    relative = {
        "Local DP": ([each.local_mse / each.central_mse for each in needs], BASELINE),
        "inca": (
            [plan.budget.noise / each.central_mse for plan, each in zip(settled, needs, strict=True)],
            OWN,
        ),
    }
    received = {
        "rounds": ([float(rounds_bytes(ROUNDS, 1))] * len(sizes), OWN),
        "end today,\neveryone to everyone": ([float(sum(today(n, ROUNDS, 1)[:2])) for n in sizes], COLLUDER),
        "S as bits, by gossip": ([float(max(1, beyond(n, ROUNDS, 1).bits)) for n in sizes], DATA),
        "a design for the end:\npartners and a tree": (
            [float(sum(beyond(n, ROUNDS, 1)[:2])) for n in sizes],
            CANCELLING,
        ),
    }
    with look():
        figure, (left, right) = canvas(7.2, 7.6, rows=2)
        for axes, lines, title, own in (
            (left, relative, "Mean squared error, as a multiple of Central DP's", "inca"),
            (right, received, "Bytes that a party receives in a session, one coordinate", "rounds"),
        ):
            ends = []
            for name, (heights, colour) in lines.items():
                axes.plot(sizes, heights, color=colour, lw=OWN_WIDTH if name == own else OTHER_WIDTH)
                ends.append(LineEnd(name, sizes[-1], heights[-1], colour, name == own))
            axes.set(xscale="log", yscale="log", xlabel="parties", xlim=(50, 10**9))
            axes.set_title(title, loc="left")
            axes.grid(axis="y")
            label_ends({axes: ends})
        headline(
            figure,
            "The error stays beside Central DP's at any n; the end of a session grows with n, and need not",
        )
        caption(
            figure,
            f"epsilon 1, delta 1e-5, a tenth colluding, nobody leaves before the end, at most {ROUNDS} rounds. The "
            "design for the end is not implemented in the networked party.",
        )
        save(figure, ROOT / "docs" / "pictures" / "growth.png")


if __name__ == "__main__":
    parts = {"plans": plans, "audit": audit, "end": end, "different": different, "picture": picture}
    chosen = sys.argv[1:] or list(parts)
    if unknown := [name for name in chosen if name not in parts]:
        sys.exit(f"{unknown[0]} is not one of {', '.join(parts)}")
    for part in chosen:
        began = time.perf_counter()
        print(f"--- {part}", flush=True)
        parts[part]()
        print(f"({time.perf_counter() - began:.0f} s)", flush=True)

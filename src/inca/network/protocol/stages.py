"""The stages of a party as a table: one row for each, which `Party` walks.

The rule. *A stage ends as soon as it may and everyone it waits for has spoken or is known to be down, and at its
deadline at the latest.*

Theory of operation. A party is in one stage at a time, and begins in "gathering". With every event, and whenever time
has passed, it asks the row of its stage whether the stage is over:

1. Once something is decided, and all that it names is there, a stage with `until_decision` is over; what was decided
   says which follows. Once the deposits are opened, others are served.
2. At `deadline` it is over, whoever is silent.
3. From `earliest` on it is over if nobody is awaited: of those in `waits_for`, the ones that have been down for a
   period do not count, unless they may still come back, until `grace`.

Then `then` does what is to be done last, and says which of the `successors` follows (without it, the first), whose
`enter` does what is to be done first. A party may walk through several stages at once. Where it stays it does the
`work` that is `due`, and talks about signed items if the stage `gossips`. "over" and "left" have no successors.

A message in `ignores` means nothing in the stage, and changes nothing; it may have been under way for long.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from inca.errors import CannotJoin
from inca.network.protocol.messages import ConsensusMessage, Message
from inca.network.protocol.records import Left
from inca.network.protocol.stage_rule import Stage, StageRule, never, periods, retry_time

if TYPE_CHECKING:
    from inca.network.protocol.party import Party

_DIGEST_PERIODS = 2.0  # for the digests of all who are not gone
PATIENCE_PERIODS = 2.5
"""For a party that is there and neither deposits nor refuses. Whoever missed the decision asks after two periods."""
_OPENING_PERIODS = 2.0  # for the keys of the trustees
_SERVING_PERIODS = 3.0
_CONSENSUS_PERIODS = 4.0  # in which a decision is reached if a quorum is there
USUAL_DECISIONS = 2  # a cohort, to commit to it


def periods_after_rounds(smaller_cohorts: int) -> float:
    """Return how many periods a session lasts at most after its last round, if its cohort shrinks that often."""
    stages = _DIGEST_PERIODS + _OPENING_PERIODS + _SERVING_PERIODS
    return stages + _CONSENSUS_PERIODS * (USUAL_DECISIONS + smaller_cohorts) + 1.0  # as clocks differ


# --- before the rounds ------------------------------------------------------------------------------------------


def after_gathering(party: Party, now: float) -> Stage:
    """Begin; ask first after an absence; leave if there is no seed."""
    if party.coin_flip.flipping:
        party.finalization.reason = party.coin_flip.failure()
        return "left"
    if party.joining.away:
        return "asking"
    for peer in list(party.context.down):
        party.context.mark_up(peer)  # who was not there before the start may be there now
    return next_round_or_end(party, now)


def asking_deadline(party: Party) -> float:
    """Return until when to wait for witnesses; without a journal, as long as there are rounds."""
    session = party.session
    last_round = session.deadline(session.rounds)
    return last_round if party.joining.without_journal else max(party.entered + session.period, session.start)


def ask(party: Party, now: float) -> None:
    """Ask the witnesses again, and say after a while who is silent: people can do something about it."""
    party.back_off(now)
    party.joining.ask()
    if now >= party.entered + party.session.period:
        party.joining.log_silence()


def after_asking(party: Party, now: float) -> Stage:
    """Go on with the round that is under way; leave if it might say something twice."""
    try:
        party.joining.enter(party.session.clock_round(now))
    except CannotJoin as error:
        party.finalization.reason = str(error)
        return "left"
    return next_round_or_end(party, now)


# --- rounds -------------------------------------------------------------------------------------------------------


def round_deadline(party: Party) -> float:
    """Return the end of the round by the clock, or a period after its beginning if that is earlier."""
    session = party.session
    return min(session.deadline(party.ledger.round), party.entered + session.period)


def begin_round(party: Party, now: float) -> None:
    """Begin the next round: its offers go out."""
    party.transfers.deciding = True
    party.retry_at = now + party.retry_pause  # that was the first attempt
    party.transfers.begin_round(_next_round(party, now))


def repeat_offers(party: Party, now: float) -> None:
    """Send that which has no answer again, less and less often."""
    party.back_off(now)
    party.transfers.repeat()


def next_round_or_end(party: Party, now: float) -> Stage:
    """Begin a round, if there is one."""
    return "rounds" if _next_round(party, now) <= party.session.rounds else "digests"


def _next_round(party: Party, now: float) -> int:
    """Return the round to begin next; one above T means that there is none."""
    return max(party.ledger.round + 1, party.session.clock_round(now), party.joining.entry)


# --- the end ------------------------------------------------------------------------------------------------------


def seal(party: Party, now: float) -> None:
    """Decide about all offers that waited for their round, and make the balance final."""
    party.agenda.patient_until = now + _DIGEST_PERIODS * party.session.period
    party.transfers.deciding = True
    party.transfers.decide_early(all_rounds=True)
    party.finalization.seal()


def after_decision(party: Party) -> Stage:
    """Do what was decided: make the deposit or refuse, show the key, or wait for what others decide."""
    if party.finalization.last_step == "commit":
        return "opening"
    return "assessing" if party.finalization.must_answer else "agreeing"


def be_patient(party: Party, now: float) -> None:
    """Go on without those who are silent, though not gone, only after a while."""
    if party.ledger.cohort is not None:  # the first cohort is agreed on when digests have been waited for
        party.agenda.patient_until = now + PATIENCE_PERIODS * party.session.period


def agree(party: Party, now: float) -> None:
    """Take part in the next decision; meanwhile the own loss may be worked out on what it will probably be."""
    be_patient(party, now)
    party.consensus.enter(now)
    party.finalization.look_ahead(party.agenda.propose(now))


def assess(party: Party, now: float) -> None:
    """Make the deposit, or have the own loss worked out first."""
    be_patient(party, now)
    party.finalization.request_assessment()


def without_keys(party: Party, _: float) -> Stage:
    """Say how many trustees must come back; they are waited for."""
    finalization = party.finalization
    shown, needed = finalization.keys
    finalization.reason = (
        f"the final messages are committed to, and cannot be opened yet: {needed - shown} more of "
        f"{party.context.listed(finalization.missing_keys)} must come back, and then there is a result"
    )
    return "serving"


def without_consensus(party: Party, _: float) -> Stage:
    """End without a result."""
    finalization, session = party.finalization, party.session
    if party.ledger.in_doubt:
        finalization.reason = (
            "this party has accepted to open the final messages, and does not know whether that was decided: "
            "others must come back, and then there may be a result"
        )
    elif not finalization.reason:
        down = party.context.down
        there, absent = session.parties - len(down), party.context.listed(down)
        finalization.reason = (
            f"no agreement on the result: at least {session.quorum} of {session.parties} parties must be there "
            f"at the end, got {there} without {absent}"
            if there < session.quorum
            else f"no agreement on the result: at least {session.min_participants} parties must hand over their values"
        )
    return "serving"


def serving_deadline(party: Party) -> float:
    """Serve those who are there for a while, or for longer if this party was asked to: some may come back late.

    Whoever has accepted commit and does not know the outcome has no end: it waits for the others until it is stopped.
    """
    if party.finalization.unfinished:
        return inf
    return party.entered + max(_SERVING_PERIODS * party.session.period, party.serve_s)


def say_done(party: Party, _: float) -> None:
    """Tell the others that this party needs nothing more: it knows the outcome.

    Without commit there is none, and there still may be one: then the others' keys are needed. So nothing is said.
    """
    if party.finalization.opened and party.me not in party.signed_items.by_kind["done"]:
        party.context.publish("done", b"")


def say_all_done(party: Party, _: float) -> None:
    """Tell the neighbours, if everyone is done, and keep no secret."""
    party.finalization.forget()
    if not party.signed_items.missing("done"):
        party.anti_entropy.announce_all_done()


def leave(party: Party, _: float) -> None:
    """Make it durable that the party has left, and why."""
    party.context.record(Left(party.finalization.reason))
    party.finalization.forget()
    party.context.log_event("left", reason=party.finalization.reason)


# --- the table ----------------------------------------------------------------------------------------------------

STAGES: dict[Stage, StageRule] = {
    # The public seed is the outcome of a coin flip, unless it was agreed on; the loss at full attendance is worked out.
    "gathering": StageRule(
        successors=("rounds", "asking", "digests", "left"),
        deadline=lambda party: party.coin_flip.deadline,
        earliest=lambda party: party.joining.start_time,
        waits_for=lambda party: party.coin_flip.missing_parts,
        then=after_gathering,
        enter=lambda party, now: party.coin_flip.start(),
        gossips=("commit", "confirm", "reveal"),
        gossips_while=lambda party: party.coin_flip.flipping,
        logged=False,
    ),
    # After a restart or a late start: what have others seen of this party? It leaves if its journal is behind.
    "asking": StageRule(
        successors=("rounds", "digests", "left"),
        deadline=asking_deadline,
        earliest=lambda party: party.joining.first_answer_time,
        waits_for=lambda party: party.joining.awaited,
        grace=lambda party: inf if party.joining.without_journal else -inf,
        then=after_asking,
        enter=lambda party, now: party.joining.choose_witnesses(),
        work=ask,
        due=retry_time,
        ignores=ConsensusMessage,
    ),
    # Offers go out, offers are decided; one round after the other.
    "rounds": StageRule(
        successors=("rounds", "digests"),
        deadline=round_deadline,
        earliest=lambda party: party.entered + party.session.min_round_duration,
        waits_for=lambda party: party.transfers.awaited(),
        then=next_round_or_end,
        enter=begin_round,
        work=repeat_offers,
        due=retry_time,
        logged=False,
    ),
    # The balance is final; who sent what to whom, from everyone.
    "digests": StageRule(
        successors=("agreeing", "assessing", "opening"),
        deadline=periods(_DIGEST_PERIODS),
        waits_for=lambda party: party.signed_items.missing("digest"),
        until_decision=True,
        enter=seal,
        gossips=("digest",),
    ),
    # A quorum agrees on a cohort, and on commit or a smaller cohort.
    "agreeing": StageRule(
        successors=("serving", "agreeing", "assessing", "opening"),
        deadline=periods(_CONSENSUS_PERIODS),
        earliest=never,
        until_decision=True,
        then=without_consensus,
        enter=agree,
        work=lambda party, now: party.consensus.tick(now),
        due=lambda party: party.consensus.wakeup,
        gossips=("digest", "deposit", "refusal"),
    ),
    # The party's own loss on the agreed execution is worked out, before it makes its deposit or refuses.
    "assessing": StageRule(
        successors=("agreeing", "assessing", "opening"),
        earliest=lambda party: inf if party.finalization.must_answer else -inf,
        until_decision=True,
        enter=assess,
        gossips=("digest", "deposit", "refusal"),
    ),
    # The deposits are committed to: trustees show their keys, and any few of them open all.
    "opening": StageRule(
        successors=("serving",),
        deadline=periods(_OPENING_PERIODS),
        earliest=never,
        waits_for=lambda party: party.finalization.missing_keys,
        then=without_keys,
        gossips=("key",),
    ),
    # Others are given what they lack. A decision may still come, and keys; whoever is in doubt still asks for one.
    "serving": StageRule(
        successors=("over", "serving", "agreeing", "assessing", "opening"),
        deadline=serving_deadline,
        # Those who still need something, or have what is needed here.
        waits_for=lambda party: party.signed_items.missing("done") | party.finalization.missing_keys,
        earliest=lambda party: inf if party.finalization.unfinished else -inf,
        grace=lambda party: party.entered + party.serve_s,
        until_decision=True,
        enter=say_done,
        work=lambda party, now: party.consensus.tick(now),
        due=lambda party: party.consensus.wakeup if party.ledger.in_doubt else inf,
        gossips=("digest", "deposit", "key", "done"),
    ),
    # Everything is done.
    "over": StageRule(successors=(), enter=say_all_done, ignores=Message, logged=False),
    # The party has left the session for good.
    "left": StageRule(successors=(), enter=leave, ignores=Message, logged=False),
}

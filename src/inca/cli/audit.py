"""`inca audit`: the exact loss of every honest party of an execution, and what the theorems say of it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

from inca.cli.options import (
    OPTIONS,
    AuditAdversary,
    AuditedPrivacy,
    AuditNoise,
    AuditOutput,
    ExecutionFile,
    PlanFile,
    domain_of,
    names,
    options,
    override_execution,
    refuse_combination,
)
from inca.cli.printing import OutputFiles, print_content, print_json, print_next
from inca.cli.progress import progress_bar
from inca.errors import InvalidInput

if TYPE_CHECKING:
    from pathlib import Path

    from inca import Domain, Transcript
    from inca.documents.certificate import CertificateDocument


@options(OPTIONS)
class DeviceChoice:
    """Where losses are worked out."""

    device: Literal["cpu", "cuda"] | None = None
    """cpu, or cuda: account on a GPU, which needs PyTorch. Default: a GPU if available and faster."""


def audit(
    execution: ExecutionFile,
    /,
    *,
    required: AuditedPrivacy = AuditedPrivacy(),
    plan: PlanFile = PlanFile(),
    adversary: AuditAdversary = AuditAdversary(),
    noise: AuditNoise = AuditNoise(),
    device: DeviceChoice = DeviceChoice(),
    output: AuditOutput = AuditOutput(),
) -> None:
    """Tell exactly what an adversary learns of each honest party from an execution.

    The adversary knows who sent to whom and who was present, sees the messages that its colluders receive, those it
    eavesdrops on and all final messages, and combines them in the best way. The loss is exact, not a bound, unless
    --leavers-collude asks for one. If someone was absent or a share did not arrive, the loss at full attendance is
    reported as well, and a required guarantee must hold there, too. What was agreed, in a plan or in the file, is
    checked unless --epsilon asks for something else.

    Example:  seq 21 220 > values.csv, then
    inca average values.csv --domain 0 240 --sigma-independent 30 --sigma-cancelling 200 --transcript run.json, then
    inca audit run.json --colluding 0.1 --domain 0 240
    """
    import inca
    from inca._base.validation import integer, positive, refuse

    refuse_combination("--plan", *names(AuditedPrivacy), "--sensitivity", "--domain", "--ball", "--dimensions")
    refuse_combination("--ball", "--domain")
    refuse_combination("--sensitivity", "--domain", "--ball", "--dimensions")
    if required.epsilon is not None:
        positive("--epsilon", required.epsilon)
    if output.plot is not None and output.plot.suffix != ".svg":
        refuse("--plot", str(output.plot), "a file name that ends in .svg")
    files = OutputFiles(certificate=output.certificate, figure=output.plot)
    bounds = None if noise.domain is None and noise.ball is None else domain_of(noise)
    if integer("--dimensions", noise.dimensions, min=1) > 1 and bounds is None:
        raise InvalidInput("--dimensions must be combined with --domain or --ball")
    transcript = inca.read_execution(execution)
    if adversary.leavers_collude and transcript.execution.cohort is None:
        raise InvalidInput("--leavers-collude must be combined with an execution in which a cohort settles")
    agreed, delta, rule = transcript.agreed, required.delta, required.rule
    if plan.plan is not None:
        followed = inca.read_plan(plan.plan)
        followed.check(transcript)
        agreed = followed.requirements.agreed
        sensitivity, delta, rule = followed.requirements.sensitivity, agreed.delta, followed.requirements.rule
    else:
        sensitivity = _sensitivity(noise, bounds, transcript)
    drawn = adversary.colluding is not None or adversary.eavesdropped is not None
    if adversary.seed is not None and transcript.adversary is not None and not drawn:
        raise InvalidInput("--seed must be combined with --colluding or --eavesdropped, which draw an adversary")
    transcript = override_execution(transcript, adversary, noise, agreed)
    with progress_bar("round") as progress:
        result = inca.certify(
            transcript,
            sensitivity=sensitivity,
            delta=delta,
            rule=rule,
            basis="leavers counted as colluders" if adversary.leavers_collude else "exact",
            device=device.device,
            progress=progress,
        )
        document = result.document(agreed, required.epsilon, conditions=True)
    outcome = inca.verdict(document)
    files.write("certificate", document.write)
    files.write("figure", partial(_draw, document))
    if output.json:
        print_json(document.as_fields() | {"kept": outcome.kept, "verdict": str(outcome)})
    else:
        print_content(inca.content(document), details=output.details)
    files.finish(announce=not output.json)
    if not output.json:
        print_next(f"inca attack {execution}, to see how far the best attack gets")
    if outcome.refused and (document.required is not None or document.agreed is not None):
        raise SystemExit(1)


def _sensitivity(noise: AuditNoise, bounds: Domain | None, transcript: Transcript) -> float:
    """Return how far a value can move: as an option says, else as the file does; else refuse."""
    if noise.sensitivity is not None:
        return noise.sensitivity
    if bounds is not None:
        return bounds.sensitivity(noise.dimensions)
    if transcript.sensitivity is None:
        raise InvalidInput(
            "the file must say the sensitivity of its values, or --sensitivity, --domain or --ball must, got neither"
        )
    return transcript.sensitivity


def _draw(document: CertificateDocument, path: Path) -> None:
    from inca._base.files import write_whole
    from inca.reporting.certificate import loss_figure
    from inca.reporting.picture import picture

    drawn = picture(loss_figure(document)).encode()
    write_whole(path, lambda stream: stream.write(drawn))

"""`sle encode`: files of annotations to files of opinions."""

from __future__ import annotations

from slencodings.cli import options as o
from slencodings.progress import notes


def encode(
    source: o.In,
    target: o.Out = None,
    into: o.Into = None,
    again: o.Again = False,
    engine: o.OnEngine = "duckdb",
    master: o.Master = None,
    patience: o.Patience = None,
    memory: o.Memory = None,
    format: o.InFormat = None,
    question: o.Question = None,
    item: o.Column = None,
    annotator: o.Column = None,
    label: o.LabelColumn = None,
    confidence: o.Number = None,
    uncertainty: o.Number = None,
    reliability: o.Number = None,
    confidence_scale: o.Scale = None,
    labels: o.Labels = None,
    missing: o.IfMissing = "error",
    duplicates: o.IfDuplicate = "all",
    trust: o.Trust = "none",
    save_trust: o.SaveTrust = None,
    seed: o.Seed = None,
    smoothing: o.Smoothing = None,
    prior_weight: o.PriorWeight = 2.0,
    operator: o.HowFused = "cumulative",
    form: o.InForm = None,
    values: o.Values = "belief,uncertainty,probability",
    quiet: o.Quiet = False,
    verbose: o.Verbose = False,
) -> None:
    """Fuse files of annotations into a file of opinions, one per item.

    Columns are found by their usual names (item or task, annotator or worker, label or answer,
    confidence, reliability) and what was found is said. With --into, the annotations are added to
    evidence that is kept, and opinions are of all that is in it; it may itself be IN.
    """
    o.check_output(target, into, again)
    scale = o.scale_of(confidence_scale)
    o.check_trust(
        trust,
        scale,
        {"--reliability": reliability, "--smoothing": smoothing}
        | {"--operator": None if operator == "cumulative" else operator},
        {"--save-trust": save_trust, "--seed": seed},
    )
    o.check_engine(
        engine,
        {"--master": master, "--patience": patience},
        {
            "--form": form if form in ("lists", "weights") else None,
            "--format": None if format in o.TABLES else format,
            "--question": question,
            "--into": into,
            "--memory": memory,
            "--save-trust": save_trust,
            "--seed": seed,
            "--trust": trust if trust == "learned" else None,
        },
    )
    # After the checks, so that a slip of the keyboard does not wait for DuckDB.
    from slencodings.tables.fuse import Fusing
    from slencodings.tables.rows import Reading

    reading = Reading(
        item=item,
        label=label,
        annotator=annotator,
        confidence=confidence,
        uncertainty=uncertainty,
        reliability=reliability,
        confidence_scale=scale,
        labels=o.words(labels),
        missing=missing,
        duplicates=duplicates,
        format=format,
        question=question,
    )
    fusing = Fusing(
        operator=operator,
        smoothing=smoothing,
        prior_weight=prior_weight,
        values=tuple(dict.fromkeys(o.words(values) or [])),
        form=form,
        trust=trust,
        seed=seed or 0,
    )
    with notes(quiet) as (tell, progress):
        # All that was learned is a detail of many lines.
        def say(what: str, text: str) -> None:
            if verbose or what != "detail":
                tell(what, text)

        if engine == "spark" and target is not None:
            from slencodings.files.spark import PATIENCE, encode_files

            patience = PATIENCE if patience is None else patience
            about = encode_files(
                source, target, reading, fusing, master=master, patience=patience, say=say
            )
        else:
            from slencodings.files.encode import encode_file

            about = encode_file(
                source,
                target,
                reading,
                fusing,
                into=into,
                again=again,
                memory=memory,
                save_trust=save_trust,
                say=say,
                progress=progress,
            )
        for name, value in about.items() if verbose else ():
            if name != "trust":
                say("detail", f"{name} = {value}")

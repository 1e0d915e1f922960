"""From the JSON to what people read: a table, two plots with alt text, the README's section."""

from __future__ import annotations

import json
from typing import Any

from course_lib.given import plots
from tests.bench.measure import ROOT
from tests.bench.rivals import OURS, TRANSFORMERS

RESULTS = ROOT / "tests" / "bench" / "results"
README = ROOT / "README.md"
DECODE = [f"decode {batch}x{threads}" for batch in (1, 32) for threads in (1, 2)]
BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"


def read() -> dict[str, Any]:
    """What was measured last."""
    found: dict[str, Any] = json.loads((RESULTS / "results.json").read_text(encoding="utf-8"))
    return found


def write_json(found: dict[str, Any]) -> None:
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps(found, indent=1) + "\n"
    (RESULTS / "results.json").write_text(text, encoding="utf-8")


def write(found: dict[str, Any]) -> str:
    """Write table, plots and the README's section; returns the table."""
    decode, context = figures(found)
    for name, figure in (("decode", decode), ("context", context)):
        (RESULTS / f"{name}.png").write_bytes(figure.png)
    table = "\n\n".join([*sections(found), picture("decode", decode), picture("context", context)])
    (RESULTS / "README.md").write_text(f"# Measured\n\n{table}\n", encoding="utf-8")
    text = README.read_text(encoding="utf-8")
    if BEGIN in text:
        before, _, rest = text.partition(BEGIN)
        after = rest.partition(END)[2]
        text = f"{before}{BEGIN}\n{readme(found)}\n{END}{after}"
        README.write_text(text, encoding="utf-8")
    return table


def figures(found: dict[str, Any]) -> tuple[plots.Figure, plots.Figure]:
    rows = [r for r in found[DECODE[0]]["rows"] if r["name"] != "the course, no cache"]
    names = [row["name"] for row in rows]
    decode = plots.bars(
        names,
        {"sampled, batch 1, one thread": [row["tokens_per_second"] for row in rows]},
        "MiniGPT, 16 to 256 tokens",
        "",
        "tokens a second",
    )
    at = [row["context"] for row in found["context"]]
    series = {
        name: [row[name]["median"] for row in found["context"]] for name in ("cached", "no cache")
    }
    context = plots.lines(at, series, "One more token", "tokens so far", "milliseconds")
    return decode, context


def picture(name: str, figure: plots.Figure) -> str:
    return f"![{figure.alt}]({name}.png)"


def sections(found: dict[str, Any]) -> list[str]:
    """All tables in Markdown."""
    where = found["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in where["packages"].items())
    told = [
        f"{where['cpu']}, {where['cores']} cores, {where['capability']}; {where['system']}; "
        f"{versions}; {where['date']}. All figures are medians, with the 10th and 90th percentile "
        "in brackets; rivals took turns, and ratios are medians of the rounds' ratios. On one "
        "thread the clock is the processor's time, on two that on the wall. Everybody "
        "has the shipped weights; sampled means temperature 0.8, top-k 50, top-p 0.95, no end."
    ]
    for part in (found[name] for name in DECODE if name in found):
        head = (
            f"## Decoding, 16 to 256 tokens, batch {part['batch']}, {part['threads']} thread(s)\n\n"
            f"{part['rounds']} rounds; load {part['load'][0]} before, {part['load'][1]} after; the "
            f"floor, all weights read once, {interval(part['floor_ms'])} ms."
        )
        lines = [
            f"| {r['name']} | {interval(r['ms'])} | {r['tokens_per_second']:,} "
            f"| {r['times_transformers']:.2f} | {r['times_floor']:.2f} |"
            for r in part["rows"]
        ]
        told.append(
            table(
                head,
                "| | ms a step | tokens/s | x transformers | x floor |",
                "---:",
                lines,
                cells=5,
            )
        )
    told.append(
        table(
            "## Calls of torch a step, sampled\n\nTransformers decodes under `no_grad`, where "
            "torch counts some calls by their parts, the others under `inference_mode`.",
            "| | calls |",
            "---:",
            [f"| {name} | {count} |" for name, count in found["calls"].items()],
            cells=2,
        )
    )
    kinds = list(found["where"][0]["ms"])
    told.append(
        table(
            "## Where a step's time goes, sampled\n\nThe calls that work on many numbers are "
            "torch's, whoever decodes. All else is small calls, and Python between them. Of "
            "several runs each the shortest.",
            "| batch | | " + ", ms | ".join(kinds) + ", ms |",
            "---:",
            [
                f"| {r['batch']} | {r['name']} | "
                + " | ".join(f"{r['ms'][kind]:.3g}" for kind in kinds)
                + " |"
                for r in found["where"]
            ],
            cells=2 + len(kinds),
        )
    )
    told.append(
        table(
            "## Prompt of 128 tokens, and 64 after it",
            "| | prefill, ms | first token, ms | a decoded token, ms |",
            "---:",
            [
                f"| {r['name']} | {interval(r['prefill_ms'])} | {interval(r['first_token_ms'])} "
                f"| {interval(r['decode_ms'])} |"
                for r in found["prefill"]
            ],
            cells=4,
        )
    )
    told.append(
        table(
            "## One more token, by the length of the text (the course's model)",
            "| tokens so far | cached, ms | no cache, ms |",
            "---:",
            [
                f"| {r['context']} | {interval(r['cached'])} | {interval(r['no cache'])} |"
                for r in found["context"]
            ],
            cells=3,
        )
    )
    names = [name for name in found["sampling"][0] if name != "vocab"]
    told.append(
        table(
            "## From logits to a token",
            "| vocabulary | " + ", ms | ".join(names) + ", ms |",
            "---:",
            [
                f"| {r['vocab']:,} | " + " | ".join(interval(r[name]) for name in names) + " |"
                for r in found["sampling"]
            ],
            cells=1 + len(names),
        )
    )
    equal = found["equal"]
    told.append(
        f"Of {equal['rows']:,} rows, {equal['short']:,} by its shortlist, `next_token` kept "
        f"or drew in {equal['differ']:,} another token than the filters one after the other."
    )
    training, starting = found["training"], found["starting"]
    lines = [f"| {name} | {interval(ms)} ms |" for name, ms in training["ms"].items()]
    lines.append(
        f"| nanoGPT's way as a multiple of the course's | {training['nanogpt_over_course']} |"
    )
    head = f"## A training step, {training['batch']} x {training['positions']} tokens"
    told.append(table(head, "| | |", "---:", lines, cells=2))
    lines = [f"| {name} | {interval(s)} s |" for name, s in starting["seconds"].items()]
    lines.append(f"| import the course / import torch | {starting['import_ratio']} |")
    lines += [f"| load: {name} | {interval(ms)} ms |" for name, ms in starting["load_ms"].items()]
    lines += [f"| peak memory: {name} | {mb} MB |" for name, mb in starting["peak_mb"].items()]
    told.append(table("## Starting, loading, memory", "| | |", "---:", lines, cells=2))
    if quality := found.get("quality"):
        told.append(
            f"## int8\n\nBits per byte of {quality['stories']} held-out stories, each cut at the "
            f"window: float32 {quality['float32']}, int8 {quality['int8']}."
        )
    return told


def table(head: str, titles: str, align: str, lines: list[str], *, cells: int) -> str:
    rule = "|" + "|".join(["---", *[align] * (cells - 1)]) + "|"
    return "\n".join([head, "", titles, rule, *lines])


def interval(of: dict[str, float]) -> str:
    """Three digits are all that a clock is good for."""
    return f"{of['median']:.3g} ({of['p10']:.3g} to {of['p90']:.3g})"


def busy(part: dict[str, Any], found: dict[str, Any]) -> str:
    """A warning, if others wanted the processor too: calls of torch then suffer most."""
    cores, waiting = found["machine"]["cores"], max(part["load"])
    if waiting <= cores:
        return ""
    return f", while the machine was busy (a load of {waiting:.0f} on {cores} cores)"


def readme(found: dict[str, Any]) -> str:
    """The README's section: a sentence or two and a small table."""
    alone, many = found["decode 1x1"], found["decode 32x1"]
    by_name = {row["name"]: row for row in alone["rows"]}
    in_batch = {row["name"]: row for row in many["rows"]}
    ours = by_name[OURS]
    shown = [
        name
        for name in (
            TRANSFORMERS,
            OURS,
            "NumPy",
            "CTranslate2",
            "CTranslate2, int8",
            "llama.cpp",
            "llama.cpp, q8_0",
            "lesson 9: flat",
            "lesson 9: C++",
            "lesson 9: C++, int8",
        )
        if name in by_name
    ]
    lines = [
        f"| {name} | {by_name[name]['tokens_per_second']:,} "
        f"| {by_name[name]['times_transformers']:.1f} | {by_name[name]['times_floor']:.1f} |"
        for name in shown
    ]
    uncached = by_name["the course, no cache"]["ms"]["median"] / ours["ms"]["median"]
    starting = found["starting"]["seconds"]["first token of course generate"]["median"]
    return "\n".join(
        [
            "The same weights and settings (sampled, 16 to 256 tokens, one text, one thread), "
            "rivals taking turns:",
            "",
            "| | tokens a second | x transformers | x floor |",
            "|---|---:|---:|---:|",
            *lines,
            "",
            f"The floor is the time to read all weights once. In a batch of 32 the course is "
            f"{in_batch[OURS]['times_transformers']:.1f} times transformers; with its cache it is "
            f"{uncached:.1f} times itself without. `course generate` shows its first token "
            f"{starting:.1f} s after Enter. Measured on {found['machine']['cpu']}, "
            f"{found['machine']['date']}{busy(alone, found)}; `make bench` measures yours, and "
            "[all figures](tests/bench/results/README.md) say how.",
        ]
    )

"""The built-in model en-de on the Tatoeba test pairs, beside copying and a translation memory."""

import argparse
import dataclasses

import glassformer
from benchmarks.environment import data_folder, describe, write_result
from glassformer.data.pairs import open_pairs
from glassformer.decode.options import DecodeOptions
from glassformer.tasks.evaluate_translate import evaluate_translate


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    folder = data_folder("translation/tatoeba")
    rows: list[list[object]] = [["system", "engine", "BLEU", "±", "chrF", "±", "exact %"]]
    reports = {}
    for precision in ("int8", "fp32"):
        translator = glassformer.load("en-de", precision=precision)
        report = evaluate_translate(
            translator, open_pairs([folder / "test.tsv"]), open_pairs([folder / "train.tsv"]), DecodeOptions()
        )
        whole = dataclasses.asdict(report)
        reports[precision] = {key: whole[key] for key in ("engine", "n_pairs", "signatures", "systems", "slices")}
        for system in report.systems:
            if system.name == "model" or precision == "int8":
                engine = report.engine if system.name == "model" else ""
                scores = [system.bleu.score, system.bleu.interval, system.chrf.score, system.chrf.interval]
                rows.append([system.name, engine, *scores, 100 * system.exact])
    write_result("en-de", describe(), {"reports": reports}, {"Tatoeba test, 2,016 pairs": rows})


if __name__ == "__main__":
    main()

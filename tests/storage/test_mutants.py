"""Whatever a file holds, headscope reads it or raises an error of its own; what was read can be
used and printed.
"""

import importlib.util
import resource
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest

import headscope as hs
from headscope.linguistics import read_coreference, read_treebank
from headscope.patterns import Heads, load_tally
from headscope.storage import given_labels, given_pairs, read_rows
from headscope.studies import read_aligned_pairs

from ..full_record import full_record
from ..mutants import mutants

KEPT = Path(__file__).parents[1] / "results" / "kept"
MOST_GROWN = 300_000
"""kB that a process may grow by while damaged files are read; the files are of a few kB."""


def shown(*values):
    """What printing makes of them."""
    return [str(value) for value in values]


def used_record(path):
    for check in (False, True):
        record = hs.load(path, check=check)
    shown(record, record.summary, record.verified, record.texts, record.generation)
    for stack in record.stacks.values():
        shown(
            stack.kinds, stack.heads, stack.query.take([0]), stack.key.continues, stack.key.worded
        )
        for layer in stack:
            shown(layer.kind, layer.dead.sum(), layer.turned, layer.norm, layer.latent)
            layer.weights_of(0)
            if layer.has("queries"):
                layer.scores_of()
                layer.before_positions()
            if layer.statistics is not None:
                layer.statistics.mean("entropy")


def used(load):
    """Load a result, print it, make its table."""

    def use(path):
        result = load(path)
        shown(result, repr(result))
        if hasattr(result, "columns"):
            result.columns()
        return result

    return use


def used_tally(path):
    found = load_tally(path)
    shown(Heads(found), found.distances)


def used_mechanism(path):
    found = hs.load(path)
    shown(str(found), found.columns().keys())
    for cell in found.cells:
        shown(found.carried_at(*cell).shape, found.seen_often(*cell))


def kept(name):
    """A copy of a result as it was saved once."""
    return lambda path: shutil.copy(KEPT / f"{name}.safetensors", path)


def kept_parquet(path):
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table({"text": ["a b", "c", "d"] * 5, "label": [0, 1, 0] * 5}), path)


def used_rows(path):
    rows = read_rows(path)
    given_pairs(rows, str(path))
    if path.suffix != ".txt":
        given_labels(rows, str(path), {"yes": 1, "no": 0})


def written(text):
    return lambda path: path.write_text(text, encoding="utf-8")


GAP = (
    "ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\tURL\n"
    "g-1\tAnn's aunt met Bo, who knew her.\ther\t28\tAnn\t0\tTRUE\tBo\t15\tFALSE\tx\n"
)
LITBANK = (
    "MENTION\tT0\t0\t0\t0\t0\tAnn\tPER\tPROP\nMENTION\tT1\t1\t0\t1\t0\tShe\tPER\tPRON\nCOREF\tT0\tAnn-1\n"
    "COREF\tT1\tAnn-1\n"
)
CONLLU = (
    "# sent_id = a\n# text = He can't go\n1\tHe\the\tPRON\tPRP\tCase=Nom\t2\tnsubj\t_\t_\n"
    "2-3\tcan't\t_\t_\t_\t_\t_\t_\t_\t_\n2\tca\tcan\tAUX\tMD\t_\t0\troot\t_\t_\n3\tn't\tnot\tPART\tRB\t_\t2\tadvmod\t_\t_\n"
    "4\tgo\tgo\tVERB\tVB\t_\t2\txcomp\t_\t_\n\n# sent_id = "
    "b\n1\tGo\tgo\tVERB\tVB\t_\t0\troot\t_\t_\n"
)
JSONL = (
    '{"text": "a b", "label": 1}\n{"text": "c", "label": "yes"}\n{"text": "d e", "label": 0.5}\n'
)
CASES = {
    "record.safetensors": (
        lambda path: hs.save(full_record(np.random.default_rng(0)), path),
        used_record,
    ),
    "tally.safetensors": (kept("tally"), used_tally),
    "heads.safetensors": (
        lambda path: Heads(load_tally(KEPT / "tally.safetensors")).save(path),
        used(hs.load),
    ),
    "mechanism.safetensors": (kept("mechanism"), used_mechanism),
    **{
        f"{name}.safetensors": (kept(name), used(hs.load))
        for name in ("norms", "relations", "coref", "alignment", "ablation")
    },
    "texts.txt": (written("a b\n\nc d e\nf\n"), used_rows),
    "texts.jsonl": (written(JSONL), used_rows),
    "texts.csv": (written('text,label\n"a, b",1\nc,yes\n"d ""e""",0\n'), used_rows),
    "texts.tsv": (written("sentence1\tsentence2\tlabel\na\tb\t1\nc\td\t0\n"), used_rows),
    "texts.parquet": (kept_parquet, used_rows),
    "pairs.jsonl": (
        written('{"source": "das Haus", "target": "the house", "links": "0-0 1-1"}\n' * 2),
        read_aligned_pairs,
    ),
    "pairs.txt": (written("das Haus ||| the house ||| 0-0 1p1\n" * 2), read_aligned_pairs),
    "bank.conllu": (written(CONLLU), read_treebank),
    "gap.tsv": (written(GAP), read_coreference),
    "winogender.tsv": (
        written(
            "sentid\tsentence\nclerk.someone.1.male.txt\tThe clerk told someone that he could "
            "pay.\n"
        ),
        read_coreference,
    ),
    "bias.txt": (
        written(
            "1 [The clerk] met the taxi driver because [he] lost [his] key.\n"
            "2 The clerk met [the taxi driver] because [he] was late.\n"
        ),
        read_coreference,
    ),
    "litbank.ann": (written(LITBANK), read_coreference),
}
NEEDED = {"texts.parquet": "pyarrow", "bank.conllu": "conllu"}


@pytest.mark.parametrize("name", CASES)
def test_a_damaged_file_is_read_or_refused(name, tmp_path, record_property):
    if name in NEEDED and importlib.util.find_spec(NEEDED[name]) is None:
        pytest.skip(f"{NEEDED[name]} is not installed")
    make, use = CASES[name]
    path = tmp_path / name
    make(path)
    (tmp_path / "litbank.txt").write_text("Ann came .\nShe met her aunt .\n", encoding="utf-8")
    raw = path.read_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numbers that were damaged overflow
        use(path)
        grown, counts, wrong = _largest(), {"read": 0, "refused": 0}, []
        for number, mutant in mutants(raw):
            path.write_bytes(mutant)
            try:
                use(path)
                counts["read"] += 1
            except hs.errors.HeadscopeError:
                counts["refused"] += 1
            except Exception as error:  # noqa: BLE001 -- these are what is looked for
                wrong.append(f"{number}: {type(error).__name__} {str(error)[:120]}")
    for what, count in (counts | {"other errors": len(wrong)}).items():
        record_property(what, count)
    assert not wrong, (
        f"{len(wrong)} of {sum(counts.values()) + len(wrong)} damaged files gave: "
        + "\n".join(wrong[:20])
    )
    assert counts["refused"] > 0
    assert _largest() - grown < MOST_GROWN


def _largest():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

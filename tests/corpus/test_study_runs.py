"""Every study over a corpus: the same however it is run, what ends it, and what it
says beside the study that holds every text.
"""

import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from study_runs import STUDIES, model_of

import headscope as hs
from headscope.errors import HeadscopeError, RunError

from ..close import assert_close

COUNT = 8


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Models on the disk, as workers load them."""
    folder = tmp_path_factory.mktemp("models")
    made = {}
    for needs in {study.needs for study in STUDIES.values()}:
        made[needs] = str(folder / needs)
        for each in model_of(needs):
            each.save_pretrained(made[needs])
    return made


@pytest.fixture(scope="module", params=STUDIES)
def study(request):
    return STUDIES[request.param]


@pytest.fixture(scope="module")
def over(study, folders):
    """The study as a run of the named model."""

    def run(texts, **options):
        options.setdefault("part_size", 4)
        return study.call(
            folders[study.needs], None, texts, progress=False, **study.options, **options
        )

    return run


@pytest.fixture(scope="module")
def texts(study):
    """Some, and one that cannot be read."""
    return [*study.texts(COUNT), study.bad]


@pytest.fixture(scope="module")
def begun(texts, over, tmp_path_factory):
    """A folder with a finished run of the texts in their order, and its result."""
    out = tmp_path_factory.mktemp("run") / "whole"
    with pytest.warns(UserWarning, match=r"1 inputs were left out, named in .*failed\.jsonl"):
        return out, over(texts, out=out)


@pytest.fixture(scope="module")
def whole(begun):
    return begun[1]


# One draw for each study, always the same: the runner itself is drawn 25 times in test_run.py.
def test_nothing_depends_on_order_parts_engine_or_an_end(study, over, texts, whole, tmp_path):
    draw = random.Random(study.call.__name__)
    shuffled = draw.sample(texts, len(texts))
    out = tmp_path / "run"
    with ThreadPoolExecutor(2) as executor, pytest.warns(UserWarning, match="left out"):
        result = over(shuffled, out=out, part_size=draw.randint(2, 7), executor=executor)
    assert_close(study.kept(result), study.kept(whole))
    # As after a process that was killed: some of the parts, and no result.
    parts = sorted((out / "parts").iterdir())
    for part in draw.sample(parts, draw.randint(1, len(parts) - 1)):
        part.unlink()
    (out / study.written).unlink()
    with pytest.warns(UserWarning, match="left out"):
        assert_close(study.kept(over(texts, out=out, part_size=None)), study.kept(whole))
    assert_close(study.kept(hs.load(out)), study.kept(whole))


def test_it_says_what_the_study_says_that_holds_every_text(study, whole):
    model, tokenizer = model_of(study.needs)
    given = study.texts(COUNT)
    numbers = study.numbers(whole)
    held = study.numbers(study.call(model, tokenizer, given, **study.options))
    assert numbers.keys() == held.keys()
    for name, values in numbers.items():
        try:
            np.testing.assert_allclose(values, held[name], rtol=1e-4, atol=1e-5, err_msg=str(name))
        except TypeError:
            assert values == held[name]


def test_a_bad_text_is_named_and_other_options_are_refused(study, over, texts, begun):
    out, _ = begun
    assert study.reason in (out / "failed.jsonl").read_text()
    with pytest.raises(RunError, match=study.refused):
        over(texts, out=out, **study.other)
    with pytest.raises(HeadscopeError, match="has no option '?depht"):
        over(texts, depht=3)

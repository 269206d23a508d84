"""Every study over a corpus: the same to the last bit however it is run, what ends it, and what it
says beside the study that holds every text.
"""

import random
import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from study_runs import STUDIES, model_of

import headscope as hs
from headscope.errors import HeadscopeError, RunError

COUNT = 12


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
        options.setdefault("part_size", 5)
        return study.call(
            folders[study.needs], None, texts, progress=False, **study.options, **options
        )

    return run


@pytest.fixture(scope="module")
def whole(study, over):
    return over(study.texts(COUNT))


def bits(result):
    said, arrays = result._kept()
    return said, {name: array.tobytes() for name, array in arrays.items()}


@given(st.randoms(use_true_random=False), st.integers(1, 2 * COUNT), st.booleans(), st.integers(0))
@settings(
    max_examples=2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_no_bit_depends_on_order_parts_engine_or_an_end(
    study, over, whole, tmp_path_factory, order, part_size, has_executor, ended
):
    texts = study.texts(COUNT)
    order.shuffle(texts)
    out = tmp_path_factory.mktemp("run") / "run"
    options = {"out": out, "part_size": part_size}
    if has_executor:
        with ThreadPoolExecutor(2) as executor:
            result = over(texts, executor=executor, **options)
    else:
        result = over(texts, **options)
    assert bits(result) == bits(whole)
    # As after a process that was killed: some of the parts, and no result.
    parts = sorted((out / "parts").iterdir())
    random.Random(ended).shuffle(parts)
    for part in parts[: 1 + ended % len(parts)]:
        part.unlink()
    (out / "result.safetensors").unlink()
    assert bits(over(texts[::-1], out=out, part_size=None)) == bits(whole)
    assert bits(hs.load(out)) == bits(whole)
    shutil.rmtree(out)


def test_it_says_what_the_study_says_that_holds_every_text(study, whole):
    model, tokenizer = model_of(study.needs)
    held = study.numbers(study.call(model, tokenizer, study.texts(COUNT), **study.options))
    numbers = study.numbers(whole)
    assert numbers.keys() == held.keys()
    for name, values in numbers.items():
        try:
            np.testing.assert_allclose(values, held[name], rtol=1e-4, atol=1e-5, err_msg=str(name))
        except TypeError:
            assert values == held[name]


def test_a_bad_text_costs_itself_and_other_options_are_refused(study, over, whole, tmp_path):
    texts = study.texts(COUNT)
    with pytest.warns(UserWarning, match=r"1 inputs were left out, named in .*failed\.jsonl"):
        result = over([*texts, study.bad], out=tmp_path / "run")
    assert "tokens" in (tmp_path / "run" / "failed.jsonl").read_text()
    assert result.columns().keys() == whole.columns().keys()
    with pytest.raises(RunError, match=study.refused):
        over([*texts, study.bad], out=tmp_path / "run", **study.other)
    with pytest.raises(HeadscopeError, match="has no option '?depht"):
        over(texts, depht=3)

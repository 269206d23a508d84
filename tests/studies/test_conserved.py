"""Every study counts each text that it was given, or leaves it out with a reason: in = counted +
left out.
"""

import pytest

import headscope as hs
from headscope.capturing import equal_lengths
from headscope.errors import HeadscopeError
from headscope.linguistics import Sentence
from headscope.tasks import next_word
from headscope.testing import tiny_model, tiny_tokenizer

TEXTS = [f"the {letter}e cat sat on a mat" for letter in "abcdefghijklmnopqrstuvwx"]
LOST = "lost; this is a bug in headscope"


@pytest.fixture(scope="module")
def given():
    return tiny_model("gpt2", writes=True), tiny_tokenizer()


def lose_after_full_batches(monkeypatch):
    """The fault that a review planted: one text is lost after each full batch."""
    whole = equal_lengths._Batches._of_length

    def of_length(self, length, texts):
        while texts:
            count = self._fitting(length)
            yield from self._run(texts[:count])
            texts = texts[count + (count > 8 and len(texts) > count) :]

    assert whole.__code__.co_name == "_of_length"
    monkeypatch.setattr(equal_lengths._Batches, "_of_length", of_length)


BATCHED = {
    "heads": lambda *given: hs.heads(*given, TEXTS, batch_size=10, battery=False),
    "heads in parts": lambda *given: hs.heads(
        *given, TEXTS, batch_size=10, part_size=24, battery=False, progress=False
    ),
    "atlas": lambda *given: hs.atlas(*given, TEXTS, batch_size=10, progress=False),
    "norm_study": lambda *given: hs.norm_study(*given, TEXTS, batch_size=10),
    "mechanism": lambda *given: hs.mechanism(*given, TEXTS, batch_size=10),
}


@pytest.mark.parametrize("name", BATCHED)
def test_a_text_lost_after_a_full_batch_is_an_error(name, given, monkeypatch):
    assert BATCHED[name](*given) is not None
    lose_after_full_batches(monkeypatch)
    with pytest.raises(HeadscopeError, match=LOST):
        BATCHED[name](*given)


@pytest.mark.parametrize("study", [hs.heads, hs.norm_study, hs.mechanism])
def test_the_printed_result_tells_how_many_were_left_out(study, given):
    lost = []
    texts = [*TEXTS[:3], "", "x " * 90]
    found = study(*given, texts, on_error=lambda number, error: lost.append(number))
    assert lost == [3, 4]
    assert "Left out: 2 of 5 texts" in str(found)
    assert "Left out" not in str(study(*given, TEXTS[:3]))


def sentences(*texts):
    """Words that are each other's heads, as `headscope.relations` reads them."""
    made = []
    for number, text in enumerate(texts):
        words = tuple(text.split())
        heads = tuple(range(len(words)))
        relations = ("root", *["dep"] * (len(words) - 1))
        made.append(Sentence(name=f"s{number}", words=words, heads=heads, relations=relations))
    return made


def test_a_study_of_sentences_checks_and_tells_it(given, tmp_path, monkeypatch):
    """In memory, in parts, in its repr, and read from its file."""
    lost = sentences(*TEXTS[:3], "x " * 90)
    quiet = {"on_error": lambda *_: None}
    whole = hs.relations(*given, sentences(*TEXTS[:3]))
    assert "eft out" not in f"{whole}{whole!r}"
    for found in (
        hs.relations(*given, lost, **quiet),
        hs.relations(*given, lost, out=tmp_path / "run", progress=False, **quiet),
    ):
        assert found.sentences == 3
        assert "Left out: 1 of 4 sentences" in str(found)
        assert repr(found).endswith("; Left out: 1 of 4 sentences>")
        hs.save(found, tmp_path / "found.safetensors")
        again = hs.load(tmp_path / "found.safetensors")
        assert str(again) == str(found)
        assert repr(again) == repr(found)
    lose_after_full_batches(monkeypatch)
    for more in ({}, {"out": tmp_path / "other", "progress": False}):
        with pytest.raises(HeadscopeError, match=LOST):
            hs.relations(*given, sentences(*TEXTS), batch_size=10, **more)


def test_a_notebook_a_run_and_an_ablation_tell_it_too(given, tmp_path):
    texts, quiet = [*TEXTS[:2], "x " * 90], {"on_error": lambda *_: None}
    assert "<p>Left out: 1 of 3 texts</p>" in hs.norm_study(*given, texts, **quiet)._repr_html_()
    run = hs.heads(*given, texts, out=tmp_path / "run", progress=False, battery=False, **quiet)
    assert "Left out: 1 of 3 texts" in str(run)
    found = hs.ablate(given[0], next_word(given[1], [*TEXTS[:2], ""], **quiet), random_weights=True)
    assert "Left out: 1 of 3 examples" in str(found)
    assert "Left out" not in str(hs.ablate(given[0], next_word(given[1], texts[:2])))

"""What a probe finds in the demo model on a real treebank: few sentences, large differences."""

import pytest

import headscope as hs


@pytest.fixture
def bank(shared, tmp_path):
    """The first four sentences of 40 documents: parts and intervals are drawn from documents."""
    pytest.importorskip(
        "conllu", reason="needs the extra linguistics: pip install 'headscope[linguistics]'"
    )
    text = (shared / "ud-english-ewt" / "en_ewt-ud-dev.conllu").read_text(encoding="utf-8")
    sentences = []
    for document in text.split("# newdoc id = ")[1:41]:
        first = "\n\n".join(document.strip().split("\n\n")[:4])
        sentences.append(f"# newdoc id = {first}\n\n")
    path = tmp_path / "bank.conllu"
    path.write_text("".join(sentences), encoding="utf-8")
    return path


def test_attention_says_more_of_heads_than_distances_do(minilm, bank):
    found = hs.probe(*minilm, bank, kind="attention", epochs=8)
    low, _ = found.score().interval(0.95)
    assert low > 0.4
    for control in ("control task", "distances", "next word"):
        assert found.score(control).value < low
    assert found.score("selectivity").interval(0.95)[0] > 0

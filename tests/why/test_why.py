"""Why a model said a word: exact sums, measured cuts, graphs and refusals."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit

import headscope as hs
from headscope.answering import DEMO
from headscope.capturing import load_model
from headscope.errors import CaptureError, FigureError, TextError
from headscope.why import Why

from ..close import assert_close
from ..small_models import GPT, GROUPED, SHAPES, T5, ids_of, planted_model, random_model

MODELS = Path(__file__).parents[3] / "shared" / "data" / "models"


@pytest.fixture(scope="module", params=SHAPES, ids=lambda name: name.split("For")[0])
def answered(request):
    model = random_model(request.param, **SHAPES[request.param])
    return model, ids_of(model), hs.why(model, None, ids_of(model), allow_unfit=True)


def test_words_and_direct_parts_sum_to_the_lead(answered):
    model, given, result = answered
    with torch.no_grad():
        logits = model(**given).logits[0, -1]
    first, second = logits.topk(2).values.tolist()
    cap = getattr(model.config, "final_logit_softcapping", None)
    if cap is not None:
        first, second = (cap * np.arctanh(each / cap) for each in (first, second))
    assert result.lead == pytest.approx(first - second, abs=1e-4)
    # A lead may be far smaller than what it is the difference or the sum of.
    scale = max(abs(first), abs(second), np.abs(result.words).sum())
    assert result.words.sum() == pytest.approx(result.lead, abs=1e-5 * scale)
    direct = result.direct.sum() + result.rest.sum()
    assert direct == pytest.approx(result.lead, abs=1e-5 * scale)
    assert max(result.errors) * result.lead <= 1e-5 * scale


def test_a_measured_link_is_a_cut_without_renormalising(answered):
    model, given, result = answered
    tokens = torch.zeros(2, dtype=int)
    for at in (0, len(result.links) // 3, len(result.links) - 1):
        index, head, query, key = result.links[at].tolist()
        stack, layer = result.cells[index]
        query -= result.sources * (stack != "encoder")
        key -= result.sources * (stack == "decoder")
        own = {"layer": layer, "heads": head, "queries": query, "keys": key}
        cut = hs.Cut(stack=stack, renormalise=False, **own)
        with torch.no_grad():
            tokens = model(**given).logits[0, -1].topk(2).indices
            with hs.intervene(model, cut):
                logits = model(**given).logits[0, -1][tokens]
        cap = getattr(model.config, "final_logit_softcapping", None)
        logits = logits if cap is None else cap * torch.atanh(logits / cap)
        measured = float(logits[0] - logits[1]) - result.lead
        assert result.numbers[at, 3] == pytest.approx(measured, abs=2e-4)


def test_the_model_comes_back_as_it_was():
    model = random_model("GPT2LMHeadModel", **GPT)
    wanted = {name: weight.requires_grad for name, weight in model.named_parameters()}
    hs.why(model, None, ids_of(model, 4))
    assert {name: weight.requires_grad for name, weight in model.named_parameters()} == wanted
    assert not any(module._forward_hooks for module in model.modules())


def test_a_router_is_refused_with_the_reason():
    sizes = {**GROUPED, "num_local_experts": 4}
    model = random_model("MixtralForCausalLM", **sizes)
    with pytest.raises(CaptureError, match="a step of it is neither a norm nor an activation"):
        hs.why(model, None, ids_of(model))


def test_a_gradient_of_outputs_leaves_the_weights_of_eager_attention_alone():
    model = random_model("GPT2LMHeadModel", **GPT)
    sdpa = hs.why(model, None, ids_of(model, 5))
    model.set_attn_implementation("eager")
    assert_close(
        hs.why(model, None, ids_of(model, 5)).numbers[:, :4], sdpa.numbers[:, :4], atol=1e-4
    )


@pytest.fixture(scope="module")
def planted():
    return planted_model()


def test_a_planted_circuit_is_what_is_drawn(planted):
    # 5 followed 3: the last 3 looks at 5, which was told that 3 came before it
    result = hs.why(planted, None, [1, 3, 5, 2, 6, 3])
    assert (result.answer, result.refusal) == ("5", "")
    circuit = {(0, 1, 2, 1), (1, 2, 5, 2)}
    assert {tuple(result.links[at].tolist()) for at in result.lines()} == circuit
    amounts = dict(
        zip(map(tuple, result.links.tolist()), result.numbers / result.lead, strict=True)
    )
    looks, writes = amounts[0, 1, 2, 1], amounts[1, 2, 5, 2]
    # carried, estimate, measured, with later weights held
    assert looks[1:] == pytest.approx([0, 0, -1.44, 0], abs=0.02)
    assert writes[1:] == pytest.approx([1, 1, -1, -1], abs=0.02)
    assert "2 lines keep 100% of what attention does here" in result.summary


def test_it_is_kept_as_a_file(planted, tmp_path):
    result = hs.why(planted, None, [1, 3, 5, 2, 6, 3])
    again = hs.load(result.save(tmp_path / "why.safetensors"))
    assert isinstance(again, Why)
    assert str(again) == str(result)
    assert_close(
        again.to_pandas()["measured"].to_numpy(), result.to_pandas()["measured"].to_numpy()
    )


@pytest.fixture(scope="module")
def reader():
    words = {"[UNK]": 0, **{f"w{number}": number for number in range(1, 97)}}
    tokenizer = Tokenizer(WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    wrapped = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]")
    return random_model("GPT2LMHeadModel", **GPT), wrapped


def test_answer_instead_and_position_are_chosen(reader):
    result = hs.why(*reader, "w3 w8 w9 w4", "w7", instead="w11", position=1)
    assert (result.answer, result.instead, result.position) == ("w7", "w11", 1)
    with torch.no_grad():
        logits = reader[0](torch.tensor([[3, 8]])).logits[0, -1]
    assert result.lead == pytest.approx(float(logits[7] - logits[11]), abs=1e-4)
    assert result.words[2:4] == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"answer": "w7 w8"}, "'w7 w8' is several tokens, 'w7', 'w8'; give one of them, or its id"),
        ({"answer": 97}, "There is no token 97; the model has 0 to 96"),
        ({"answer": 3, "instead": 3}, "answer and instead are one token, 3; give two"),
        ({"position": 4}, "position is 4, and the text has the tokens 0 to 3"),
    ],
)
def test_what_there_is_not_is_refused(reader, given, message):
    with pytest.raises(TextError, match=message):
        hs.why(*reader, "w3 w8 w9 w4", **given)


def test_random_models_have_no_picture(reader):
    result = hs.why(*reader, "w3 w8 w9 w4 w5")
    assert result.refusal
    assert f"No picture: {result.refusal}." in result.summary
    assert "carries" in result.table()


needs_induction = pytest.mark.skipif(
    not (MODELS / "induction-2l-attn-only").is_dir(), reason="shared/data/models is not there"
)


@needs_induction
def test_the_induction_circuit_is_found():
    model, _ = load_model(str(MODELS / "induction-2l-attn-only"), writes=True)
    draw = torch.Generator().manual_seed(3)
    for _ in range(2):
        run = (torch.randperm(63, generator=draw)[:10] + 1).tolist()
        result = hs.why(model, None, [64, *run, *run[:5]])
        assert max(result.errors) < 1e-5
        for at in np.argsort(-result.strength)[:5]:
            index, head, *places = result.links[at].tolist()
            assert places == ([15, 6] if index else [6, 5])
            assert index or head in (0, 1, 3)
        assert not result.refusal
        assert 0.75 <= result.keeps(result.kept[result.chosen]) <= 1.25


def test_the_document_that_has_the_fact_carries_the_answer():
    documents = [
        "At the library they use seven. The road was quiet on Friday.",
        "The code of the mill is amber falcon. It rained near the barn on Monday.",
    ]
    text = {"documents": documents, "question": "What is the code of the mill?"}
    result = hs.why(DEMO, text=text)
    assert result.answer == "amber"
    own = {part.name: result.words[list(part.tokens)].sum() / result.lead for part in result.parts}
    assert own["document 2"] > 0.5
    assert own["document 1"] < 0.2


DOCUMENTS = [
    "At the library they use seven. The road was quiet on Friday.",
    "The code of the mill is amber falcon. It rained near the barn on Monday.",
]
ASKED = {"documents": DOCUMENTS, "question": "What is the code of the library?"}


def test_the_picture_has_the_numbers_of_the_table(planted):
    result = hs.why(planted, None, [1, 3, 5, 2, 6, 3])
    picture = result.view().picture
    table = result.to_pandas().set_index(["layer", "head", "query", "key"])
    assert len(picture["links"]) == result.sizes[-1]
    names = ["carried", "estimate", "measured", "by_later_looking"]
    for at, link in enumerate(picture["links"]):
        row = table.loc[tuple(link)]
        assert picture["names"][at] == f"{link[0]}-{link[1]}"
        assert picture["kinds"][at] == row["kind"]
        assert picture["weights"][at] == pytest.approx(row["weight"])
        shares = [row[name] / result.lead for name in names]
        assert picture["shares"][at] == pytest.approx(shares)
    for number, size in enumerate(picture["sizes"]):
        assert sum(each <= number for each in picture["graph_of"]) == size
    assert picture["keeps"][picture["chosen"]] == pytest.approx(1, abs=0.01)
    first = [at for at, of in enumerate(picture["graph_of"]) if of <= picture["chosen"]]
    own = {picture["names"][at]: picture["row_of"][at] for at in first}
    assert own == {"0-1": [0, 1], "1-2": [1, 2]}
    assert sum(picture["words"]) == pytest.approx(1, abs=1e-5)


def test_the_picture_says_which_part_each_token_is_in():
    result = hs.why(DEMO, text=ASKED)
    picture = result.view().picture
    part = next(part for part in result.parts if part.name == "document 1")
    number = picture["parts"].index("document 1")
    assert [at for at, of in enumerate(picture["part_of"]) if of == number] == list(part.tokens)


def test_an_encoder_stands_below_what_reads_it():
    model = random_model("T5ForConditionalGeneration", **T5)
    result = hs.why(model, None, ids_of(model), allow_unfit=True)
    picture = result.view().picture
    stacks = [f"encoder {layer}" for layer in range(3)] + [f"decoder {layer}" for layer in range(3)]
    assert (picture["rows"], picture["sources"]) == (stacks, 10)


def test_what_is_refused_has_no_line():
    refused = hs.why(random_model("GPT2LMHeadModel", **GPT), None, [5, 6, 7])
    picture = refused.view().picture
    assert refused.refusal
    assert (picture["links"], picture["chosen"]) == ([], -1)
    assert refused.refusal in picture["says"][1]
    assert "measured change of the lead" in picture["tables"]
    with pytest.raises(FigureError, match=re.escape(refused.refusal)):
        refused.figure()


def said(figure):
    return [text.get_text() for text in figure.matplotlib.axes[0].texts]


@pytest.mark.parametrize("width", [85, 180])
def test_the_figure_has_the_measured_numbers(planted, width, tmp_path):
    pytest.importorskip("matplotlib", reason="needs the extra figures")
    result = hs.why(planted, None, [1, 3, 5, 2, 6, 3])
    told, numbers = said(result.figure(width=width)), []
    for at in result.lines():
        share = f"{result.numbers[at, 3] / result.lead:+.0%}".replace("-", "−").replace("%", " %")
        numbers.append(f"{result.name_of(at)} {share}")
    assert len(numbers) == 2
    assert {*numbers, "words", "layer 0", "layer 1", "none of these"} <= {*told}
    assert "none of these" not in said(result.figure(width=width, colour=False))
    assert result.plot(tmp_path / "why.pdf").read_bytes().startswith(b"%PDF")


def test_columns_of_the_figure_are_parts_of_a_long_text():
    pytest.importorskip("matplotlib", reason="needs the extra figures")
    third = "Copper opens the tower. Nobody at the mill remembers the code."
    result = hs.why(DEMO, text={**ASKED, "documents": [*DOCUMENTS, third]})
    assert len(result.tokens) > 60
    part = next(part for part in result.parts if part.name == "document 1")
    share = f"{result.words[list(part.tokens)].sum() / result.lead:+.0%}".replace("%", " %")
    left_out = "columns that no line touches are left out"
    wide, narrow = said(result.figure(width=180)), said(result.figure(width=85))
    assert f"document 1 {share}" in wide
    assert f"document 1 {share}" in narrow
    assert any(name.startswith("document 3") for name in wide)
    assert not any(name.startswith("document 3") for name in narrow)
    assert (left_out in wide, left_out in narrow) == (False, True)


def test_a_file_is_read_in_a_process_that_asked_nothing(planted, tmp_path):
    path = hs.why(planted, None, [1, 3, 5, 2, 6, 3]).save(tmp_path / "why.safetensors")
    code = f"import headscope as hs; print(hs.load({str(path)!r}).summary)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "2 lines keep 100%" in done.stdout


def test_the_model_of_none_is_that_of_the_command_line():
    asked = hs.why(None, text="The code of the mill is amber falcon. The code of the mill is")
    assert asked.model == DEMO.name

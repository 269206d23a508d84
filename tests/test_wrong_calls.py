"""What a call is given by mistake is answered by one clear error of headscope, or just works."""

import contextlib
import logging
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

import headscope as hs
from headscope import tasks
from headscope.capturing import capture_encoded
from headscope.errors import (
    CaptureError,
    FileError,
    InterventionError,
    ModelError,
    RecordError,
    TextError,
)
from headscope.linguistics import Mention, Passage
from headscope.live import serving
from headscope.studies import AlignedPair
from headscope.tasks import next_word
from headscope.testing import tiny_model, tiny_tokenizer

TEXT = "the cat sat"
NO_TOKENIZER = "Expected a tokenizer after the model, got "
NO_MODEL = "Expected a model .* give the model first and its tokenizer second"


@pytest.fixture(scope="module")
def model():
    return tiny_model("gpt2", writes=True)


CALLS = {
    "capture": hs.capture,
    "capture_many": lambda *given: list(hs.capture_many(*given)),
    "generate": lambda *given: hs.generate(*given, max_new_tokens=1),
    "heads": hs.heads,
    "norm_study": hs.norm_study,
    "mechanism": hs.mechanism,
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    "given", ["bert-base-uncased", Path("folder"), [TEXT, TEXT], 3, {"a": 1}, str.split, dict]
)
def test_what_is_no_tokenizer_is_named(name, given, model):
    texts = TEXT if name in ("capture", "generate") else [TEXT]
    with pytest.raises(TextError, match=NO_TOKENIZER):
        CALLS[name](model, given, texts)
    with pytest.raises(TextError, match=NO_TOKENIZER):
        CALLS[name](model, given)
    with pytest.raises(TextError, match=NO_TOKENIZER), hs.watch(model, TEXT, tokenizer=given):
        pass


TASKS = {
    "next_word": next_word,
    "masked_word": tasks.masked_word,
    "classification": lambda given, texts: tasks.classification(given, texts, [0, 1]),
    "likeness": lambda given, texts: tasks.likeness(given, [texts, texts], [0, 1]),
    "translation": lambda given, texts: tasks.translation(given, [texts]),
    "target": lambda given, texts: tasks.translation(
        tiny_tokenizer(), [texts], target_tokenizer=given
    ),
}


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("given", [object(), "bert-base-uncased", dict])
def test_what_is_no_tokenizer_of_a_task_is_named(name, given):
    with pytest.raises(TextError, match="Expected a tokenizer, got "):
        TASKS[name](given, [TEXT, "a dog"])


def test_random_weights_that_are_neither_heads_nor_a_choice(model, tokenizer):
    for study in (hs.heads, hs.atlas):
        with pytest.raises(RecordError, match="random_weights is True or False, not <object"):
            study(model, tokenizer, [TEXT], random_weights=object())


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("given", ["the tokenizer", {"a": 1}, 3])
def test_what_is_no_model_is_named(name, given, model, tokenizer):
    pair = (tokenizer, model) if (given == "the tokenizer") else (given, tokenizer)
    texts = TEXT if name in ("capture", "generate") else [TEXT]
    with pytest.raises(ModelError, match=NO_MODEL):
        CALLS[name](*pair, texts)


STUDIES = {
    "heads": hs.heads,
    "norm_study": hs.norm_study,
    "mechanism": hs.mechanism,
    "atlas": hs.atlas,
    "faithfulness": hs.faithfulness,
    "effect": lambda *given, **more: hs.effect(*given, interventions=[hs.Zero(layer=0)], **more),
    "capture": lambda *given, **more: list(hs.capture_many(*given, **more)),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", STUDIES)
@pytest.mark.parametrize("in_parts", [False, True])
def test_a_model_without_weights_is_refused_before_any_text_is_read(
    name, in_parts, tokenizer, tmp_path
):
    with torch.device("meta"):
        empty = type(tiny_model("gpt2"))(tiny_model("gpt2").config).eval()
    run = {"out": tmp_path / "run"} if in_parts and name not in ("effect", "faithfulness") else {}
    with pytest.raises(CaptureError, match="^GPT2Model has weights on the meta device"):
        STUDIES[name](empty, tokenizer, [TEXT, ""], **run)


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        (b"the cat", "not bytes; decode it"),
        (pd.Series(["a", "b"]), "not Series; many texts go to capture_many"),
        (pd.DataFrame({"text": ["a"]}), "not DataFrame; many texts go to capture_many"),
        (torch.tensor([1, 2]), "token ids; these go to headscope.capturing.capture_enc"),
        (np.array([1, 2]), "token ids; these go to headscope.capturing.capture_enc"),
        (3, "must be a string, not int"),
    ],
)
def test_what_is_no_text_is_told_where_it_goes(given, advice, model, tokenizer):
    with pytest.raises(TextError, match=advice):
        hs.capture(model, tokenizer, given)


def test_a_long_text_has_one_message(model, tokenizer, caplog, monkeypatch):
    monkeypatch.setattr(tokenizer, "model_max_length", 8)
    with caplog.at_level(logging.WARNING), pytest.raises(TextError, match="positions for 32"):
        hs.capture(model, tokenizer, "cat " * 40)
    assert not caplog.records


def test_a_file_in_a_list_of_texts_is_told_where_it_goes(model, tokenizer):
    errors = []
    list(
        hs.capture_many(
            model, tokenizer, [Path("a.txt"), TEXT], on_error=lambda *e: errors.append(e)
        )
    )
    ((number, error),) = errors
    assert number == 0
    assert isinstance(error, CaptureError)
    assert "give a file of texts alone, not in a list" in str(error)


def test_a_file_that_was_closed_is_told(model, tokenizer, tmp_path):
    (tmp_path / "texts.txt").write_text("the cat sat\na dog ran off\n")
    with (tmp_path / "texts.txt").open() as texts:
        assert hs.heads(model, tokenizer, texts).texts == 2
    for act in (hs.heads, hs.capture_many):
        with pytest.raises(TextError, match="was closed before it was read; give its name"):
            act(model, tokenizer, texts)


def test_an_option_that_a_study_has_not_is_told_with_those_it_has(model, tokenizer, tmp_path):
    (tmp_path / "a.conllu").write_text("1\tcats\tcat\tNOUN\t_\t_\t0\troot\t_\t_\n\n")
    with pytest.raises(RecordError, match=r"'limit'; it has .*trees.*confidence"):
        hs.relations(model, tokenizer, tmp_path / "a.conllu", limit=200)


@pytest.mark.parametrize("name", ["bert", "llama"])
def test_an_attention_that_is_not_installed_is_named(name, tokenizer):
    own = tiny_model(name)
    own.config._attn_implementation = "kernels-community/none"
    with pytest.raises(ModelError, match="'kernels-community/none', which is not installed here"):
        hs.capture(own, tokenizer, TEXT)


def test_of_a_named_model_too(model, tokenizer, tmp_path):
    for part in (model, tokenizer):
        part.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="leave attn_implementation out") as found:
        hs.capture(tmp_path, text=TEXT, attn_implementation="none")
    assert "expected a folder" not in str(found.value)


@pytest.mark.parametrize("kind", ["record", "heads"])
def test_an_address_that_was_saved_to_is_loaded(kind, model, tokenizer):
    made = hs.capture(model, tokenizer, TEXT)
    if kind == "heads":
        made = hs.heads(model, tokenizer, [TEXT, "a dog ran off", "it slept well"])
    address = f"memory://folder/{kind}.safetensors"
    assert hs.save(made, address) == address
    assert str(hs.load(address)) == str(made)


@pytest.mark.parametrize("name", ["a" * 243 + ".safetensors", "é" * 121 + ".safetensors"])
def test_a_name_may_be_as_long_as_the_system_lets_it(name, model, tokenizer, tmp_path):
    record = hs.capture(model, tokenizer, TEXT)
    for _ in range(2):
        path = hs.save(record, tmp_path / name)
        assert path.name == name
        assert [each.name for each in tmp_path.iterdir()] == [name]
    assert str(hs.load(path)) == str(record)


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ({"target": "hello"}, "target= does not apply: GPT2LMHeadModel has no decoder that reads"),
        ({"target_tokenizer": "own"}, "target_tokenizer= does not apply: GPT2LMHeadModel has no"),
        ({"sampling_rate": 16000}, "sampling_rate= does not apply: .* no sound= was given"),
    ],
)
def test_an_option_that_nothing_reads_is_refused(option, why, model, tokenizer):
    given = {name: tokenizer if value == "own" else value for name, value in option.items()}
    for act in (hs.capture, hs.budget):
        with pytest.raises(CaptureError, match=why):
            act(model, tokenizer, TEXT, **given)
    if "target_tokenizer" in given:
        with pytest.raises(CaptureError, match=why):
            hs.generate(model, tokenizer, TEXT, max_new_tokens=1, **given)


def test_a_target_column_of_a_data_set_is_left_aside(model, tokenizer):
    (record,) = hs.capture_many(model, tokenizer, [{"text": TEXT, "target": "positive"}])
    assert record["self"].query.texts == (TEXT,)


@pytest.mark.parametrize("ids", [[101, 5, 7], np.array([1, 2]), torch.tensor([[1, 2]])])
def test_ids_for_many_texts_are_told_where_they_go(ids, model, tokenizer):
    for act in (hs.capture_many, hs.generate):
        with pytest.raises(
            TextError, match="token ids; these go to headscope.capturing.capture_enc"
        ):
            act(model, tokenizer, ids)


@pytest.mark.parametrize("shape", [(1, 3, 15, 20), (3, 12, 20), (1, 1, 12, 20)])
def test_a_picture_of_another_shape_is_told_with_what_the_model_reads(shape):
    with pytest.raises(CaptureError, match=r"ViTModel was given .*pixel_values.* cannot read them"):
        capture_encoded(tiny_model("vit"), None, {"pixel_values": torch.zeros(shape)})


def test_advice_fits_what_was_given(model, tokenizer, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.warns(UserWarning, match="mapping such as {'image': 'cat.png'}, not NoneType$"):
        list(hs.capture_many(model, tokenizer, [TEXT, None]))
    calls = [{"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f"}}]}]
    with pytest.raises(TextError, match="is a call of a tool or its answer, not rendered here"):
        hs.capture(model, tokenizer, [{"role": "user", "content": "hi"}, *calls])
    with pytest.raises(FileError, match=r"--out of capture or --save of a study"):
        hs.load("x.npz")
    with pytest.raises(CaptureError, match="The sound is empty: .0.; give at least one sample"):
        hs.capture(tiny_model("whisper"), None, sound=np.zeros(0), sampling_rate=16000)


def test_what_is_no_encoding_and_no_argument_is_named(model, tokenizer):
    with pytest.raises(ModelError, match=r"Expected a model \(a torch.nn.Module\), got None"):
        capture_encoded(None, None, [101] * 5)
    with pytest.raises(CaptureError, match=r"the shape \[1, 2, 3\], and .* reads \[batch token\]"):
        capture_encoded(model, None, torch.ones(1, 2, 3, dtype=torch.long))
    for name in ("attention_mask", "token_type_ids"):
        given = {"input_ids": [[5, 6, 7]], name: [[1, 1]]}
        with pytest.raises(CaptureError, match=f"{name} has 2 positions, and the ids have 3"):
            capture_encoded(model, tokenizer, given)
    with pytest.raises(CaptureError, match="model_kwargs holds arguments .* by name.* not list"):
        hs.capture(model, tokenizer, TEXT, model_kwargs=[1])


@pytest.mark.parametrize("name", ["bert", "gpt2", "opt", "gpt_neo", "distilbert", "bart"])
def test_more_ids_than_positions_are_refused(name, tokenizer):
    own, ids = tiny_model(name), torch.ones(1, 41, dtype=torch.long)
    encoding = {"input_ids": ids, "decoder_input_ids": ids[:, :5]}
    if name != "bart":
        del encoding["decoder_input_ids"]
    message = "input_ids has 41 tokens and the model has positions for 32; shorten it, or give tr"
    with pytest.raises(TextError, match=message):
        capture_encoded(own, tokenizer, encoding)
    encoding |= {"input_ids": ids[:, :5], "position_ids": torch.tensor([[0, 1, 2, 3, 40]])}
    if name == "bert":
        with pytest.raises(TextError, match=message):
            capture_encoded(own, tokenizer, encoding)
        encoding |= {"position_ids": None, "token_type_ids": torch.full((1, 5), 7)}
        with pytest.raises(CaptureError, match=r"'token_type_ids': \[1, 5\].* has no row for one"):
            capture_encoded(own, tokenizer, encoding)


@pytest.mark.parametrize("given", [None, 3, ["a"], object()])
def test_what_is_no_file_is_named(given, model, tokenizer):
    record = hs.capture(model, tokenizer, TEXT)
    for act in (hs.load, lambda path: hs.save(record, path)):
        with pytest.raises(FileError, match="Expected the path .*got"):
            act(given)
    with pytest.raises(FileError, match="save takes a record or a result, and was given"):
        hs.save(given, "a.safetensors")


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"seed": "a"}, "seed must be a whole number from 0 on, not 'a'"),
        ({"keep": [["weights"]]}, r"keep must be 'auto', .* not \[\['weights'\]\]"),
        ({"num_beams": "a"}, "num_beams must be a whole number from 1 on, not 'a'"),
        ({"cache_implementation": "quantized"}, "cannot generate like this: ImportError"),
        ({"stop_strings": 3}, "stop_strings is 3, which needs a tokenizer that reads any word"),
        ({"num_beams": 0}, "num_beams must be a whole number from 1 on, not 0"),
        ({"seed": 2**70}, "seed must be a whole number from 0 on, not"),
        ({"eos_token_id": float("nan")}, "GPT2LMHeadModel cannot generate like this"),
        ({"exponential_decay_length_penalty": (1,)}, "cannot generate like this: IndexError"),
        ({"exponential_decay_length_penalty": {}}, "cannot generate like this: KeyError: 0"),
    ],
)
def test_an_option_of_a_wrong_type_is_named(option, message, model, tokenizer):
    with pytest.raises(CaptureError, match=message):
        hs.generate(model, tokenizer, TEXT, max_new_tokens=1, **option)
    assert hs.generate(model, tokenizer, TEXT, max_new_tokens=np.int64(1), seed=np.int64(3))


def test_options_of_many_texts_are_checked(model, tokenizer):
    with pytest.raises(CaptureError, match="batch_tokens must be a whole number from 1 on"):
        hs.capture_many(model, tokenizer, [TEXT], batch_tokens="a")
    with pytest.raises(CaptureError, match="max_unknown is a share of the tokens from 0 to 1"):
        hs.capture_many(model, tokenizer, [TEXT], max_unknown="a")
    for source in ("a", None, {"a": 1}):
        with pytest.raises(RecordError, match="Expected maps .layer query key."):
            hs.rollout(source)
    for layer in ("a", None, [0]):
        with pytest.raises(RecordError, match="There are layers 0 to 0 and tokens 0 to 1; not"):
            hs.flow(np.eye(2)[None], layer=layer)


@pytest.mark.parametrize("name", ["heads", "norm_study", "mechanism"])
@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"groups": 3}, "1 groups were given for 3 texts"),
        ({"confidence": "a"}, "confidence is a number between 0 and 1, not .a."),
        ({"batch_size": "a"}, "batch_size must be a whole number from 1 on, not 'a'"),
        ({"batch_tokens": 1.5}, "batch_tokens must be a whole number from 1 on, not 1.5"),
        ({"out": 3}, "Expected the path of a file or folder, got 3"),
        ({"part_size": "a"}, "part_size must be a whole number from 1 on, not 'a'"),
        ({"part_size": 1.5}, "part_size must be a whole number from 1 on, not 1.5"),
    ],
)
def test_an_option_of_a_study_is_checked(name, option, message, tokenizer):
    texts = [TEXT, "a dog ran off", "it slept well"]
    with pytest.raises(hs.errors.HeadscopeError, match=message):
        getattr(hs, name)(tiny_model("bert"), tokenizer, texts, **option)


WEIGHTS = np.full((1, 1, 2, 2), 0.5, np.float32)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda _: hs.from_weights(3, ["a", "b"]), "self attention is 3; give one array"),
        (lambda _: hs.from_weights(WEIGHTS, 3), "Tokens must be a list of strings, not 3"),
        (
            lambda _: hs.from_weights(WEIGHTS, ["a", "b"], sentence_b_start="1"),
            "sentence_b_start is '1'; it must lie between 1 and 1",
        ),
        (lambda record: hs.compare(record, record, stack=3), "has the stacks 'self', not 3"),
        (lambda record: hs.compare([record] * 2, [record] * 2, groups=3), "1 groups were given"),
        (lambda record: hs.flow(record, queries=1.5), "There are layers 0 to .* and tokens"),
        (lambda record: hs.view(record, title=3), "title must be text, not a int; give"),
        (lambda _: hs.Zero(layer=1.5), "layer must be a whole number from 0 on"),
        (lambda _: hs.interventions.Mean(layer=0, records=3), "Mean needs the records whose mean"),
        (lambda _: hs.watch(None).__enter__(), "Expected a model .*, got None"),
        (lambda _: hs.intervene("gpt2", []).__enter__(), "Expected a model .*, got 'gpt2'"),
        (
            lambda _: hs.foreign.from_queries_keys([], [], [], rotary="none", verified=True),
            "verified is True; give the difference you measured",
        ),
        (
            lambda _: hs.foreign.from_queries_keys([], [], [], rotary="none", scale=True),
            "scale is True; give a number above 0",
        ),
    ],
)
def test_what_a_function_cannot_take_is_named(call, message):
    record = hs.from_weights(WEIGHTS, ["a", "b"])
    with pytest.raises(hs.errors.HeadscopeError, match=message):
        call(record)


NOTHING = [None, object(), [["weights"]], "a", -7, 1.5, {"a": 1}, float("nan"), True]
READING = "groups stack confidence truncate on_error allow_unfit"
SWEPT = {
    "ablate": "heads layers stack top groups alpha correction on_error",
    "alignment_study": "target_tokenizer groups resume",
    "atlas": f"{READING} patterns correction",
    "compare": "spread confidence least groups stack",
    "coref": f"{READING} seed splits",
    "effect": "controls top groups interventions on_error",
    "faithfulness": f"{READING} layer query",
    "flow": "queries layer stack",
    "from_nnsight": "example positions",
    "from_transformer_lens": "example positions decoder_tokens",
    "heads": f"{READING} patterns position_mean alpha",
    "mechanism": f"{READING} at pattern",
    "probe": "sentences split seeds epochs rank least on_error",
    "relations": f"{READING} correction",
    "serve": "port max_tokens seconds beside atlas",
    "word_alignment": "by state stack",
}
"""Functions, and options of which no wrong value may be answered by a bare error."""


@pytest.fixture(scope="module")
def swept(model, tokenizer, tmp_path_factory):
    """What each function is given beside one wrong value."""
    bank = tmp_path_factory.mktemp("bank") / "a.conllu"
    bank.write_text("1\tcats\tcat\tNOUN\t_\t_\t0\troot\t_\t_\n\n" * 8)
    record = hs.capture(model, tokenizer, TEXT)
    two = ["the", "cat"]
    of_texts = (tiny_model("bert"), tokenizer, [TEXT, "a dog ran off"])
    given = dict.fromkeys(SWEPT, of_texts)
    given |= dict.fromkeys(("probe", "relations"), (*of_texts[:2], bank))
    given["alignment_study"] = (*of_texts[:2], [AlignedPair.of("das", "the", "0-0")])
    mentions = (Mention(start=at, stop=at + 1, entity="e", kind="nominal") for at in (0, 2))
    passage = Passage(
        name="p", text=TEXT, spans=((0, 3), (4, 7), (8, 11)), mentions=tuple(mentions)
    )
    given["coref"] = (*of_texts[:2], [passage])
    given |= {"ablate": (model, next_word(tokenizer, [TEXT])), "compare": (record, record)}
    given |= {"effect": (model, tokenizer, TEXT), "flow": (record,), "word_alignment": (record,)}
    given |= {"from_nnsight": (WEIGHTS, two), "serve": (model, tokenizer)}
    given["from_transformer_lens"] = {"blocks.0.attn.hook_pattern": WEIGHTS[0]}, two
    return given


@pytest.mark.parametrize("name", SWEPT)
def test_no_wrong_value_is_answered_by_a_bare_error(name, swept, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # A server that would start has taken what it was given.
    monkeypatch.setattr(serving, "quiet_server", lambda *_: SimpleNamespace(run=lambda **_: None))
    needed = {"word_alignment": {"layer": 0}, "effect": {"interventions": [hs.Zero(layer=0)]}}
    args, more = swept[name], {"allow_unfit": True} if "on_error" in SWEPT[name] else {}
    more |= {"battery": False} if name in ("atlas", "heads") else needed.get(name, {})
    calls = [(at, wrong) for at in (*range(len(args)), *SWEPT[name].split()) for wrong in NOTHING]
    for at, wrong in calls:
        given = [wrong if number == at else each for number, each in enumerate(args)]
        named = more | ({at: wrong} if isinstance(at, str) else {})
        with contextlib.suppress(hs.errors.HeadscopeError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            getattr(hs if name in hs.__all__ else hs.foreign, name)(*given, **named)


@pytest.mark.parametrize(
    "name", ["heads", "norm_study", "mechanism", "atlas", "relations", "coref", "ablate"]
)
@pytest.mark.parametrize(
    ("option", "why"),
    [
        ({"stack": "cross"}, "has the stacks|have the stacks"),
        ({"layerss": [99]}, "has no option 'layerss'; it has"),
        ({"on_error": 3}, "on_error is called with number and error of what is left out"),
        ({"progress": "yes"}, "progress is True or False, not 'yes'"),
        ({"confidence": 7}, "confidence is a number between 0 and 1, not 7"),
    ],
)
def test_a_wrong_option_is_one_error_in_memory_and_in_a_run(
    name, option, why, swept, model, tokenizer, tmp_path
):
    args = swept.get(name, swept["heads"])
    in_parts = {"out": tmp_path / "run"}
    calls = [(args, option), (args, option | in_parts)]
    if name == "ablate":
        in_parts |= {"texts": [TEXT], "tokenizer": tokenizer, "allow_unfit": True}
        calls = [(args, option | {"allow_unfit": True}), ((model, "next-word"), option | in_parts)]
    errors = []
    for given, more in calls:
        with pytest.raises((RecordError, InterventionError), match=why) as found:
            getattr(hs, name)(*given, **more)
        errors.append((type(found.value), str(found.value)))
    assert errors[0] == errors[1]


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ({"batch_size": 0}, "batch_size must be a whole number from 1 on, not 0"),
        ({"progress": object()}, "progress is True or False, not <obj"),
        ({"allow_unfit": 1}, "allow_unfit is True or False, not 1"),
    ],
)
def test_what_all_studies_take_is_checked_of_pairs_too(option, why, tokenizer):
    pair = hs.studies.AlignedPair.of("the cat", "a cat", "0-0 1-1")
    with pytest.raises(RecordError, match=why):
        hs.alignment_study(tiny_model("bart"), tokenizer, [pair], **option)


def test_what_is_no_classifier_is_one_error_in_memory_and_in_a_run(model, tokenizer, tmp_path):
    for more in ({}, {"out": tmp_path / "run"}):
        with pytest.raises(ModelError, match="expected a classifier's .example class."):
            hs.faithfulness(model, tokenizer, [TEXT, "a dog ran off"], **more)

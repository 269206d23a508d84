"""What the notebooks of BertViz do, cell by cell, rewritten and run on tiny models under the names
of the real ones.

The cells are ours; they make the same calls in the same order as BertViz's own notebooks of these
names.
"""

import json
import string

import pytest

from headscope.bertviz.__main__ import rewrite_notebook
from headscope.testing import tiny_model

LETTERS = string.ascii_letters + string.digits + ".,"
QUIET = "utils.logging.set_verbosity_error()\n"
PAIR = """
def draw(model, tokenizer, first, second=None, without_delimiters=False, **options):
    inputs = tokenizer.encode_plus(first, second, return_tensors="pt", add_special_tokens=True)
    ids = inputs["input_ids"]
    start = None
    if second:
        types = inputs["token_type_ids"]
        attention = model(ids, token_type_ids=types)[-1]
        start = types[0].tolist().index(1)
    else:
        attention = model(ids)[-1]
    tokens = tokenizer.convert_ids_to_tokens(ids[0].tolist())
    if without_delimiters:
        for place, token in enumerate(tokens):
            if token in ("[CLS]", "[SEP]"):
                for layer in attention:
                    layer[0, :, place, :] = 0
                    layer[0, :, :, place] = 0
    VIEW(attention, tokens, start, **options)
"""
BERT = """
name = "bert-base-uncased"
model = BertModel.from_pretrained(name, output_attentions=True)
tokenizer = BertTokenizer.from_pretrained(name, do_lower_case=True)
"""
ALONE = """
name = "NAME"
model = KINDModel.from_pretrained(name, output_attentions=True)
tokenizer = KINDTokenizer.from_pretrained(name)
inputs = tokenizer.encode_plus("A lazy dog sleeps.", return_tensors="pt", add_special_tokens=True)
ids = inputs["input_ids"]
attention = model(ids)[-1]
tokens = tokenizer.convert_ids_to_tokens(ids[0].tolist())
VIEW(attention, tokens)
"""
BOTH = """
from transformers import AutoTokenizer, AutoModel, utils
from bertviz import VIEW

name = "NAME"
tokenizer = AutoTokenizer.from_pretrained(name)
model = AutoModel.from_pretrained(name, output_attentions=True)
options = {"return_tensors": "pt", "add_special_tokens": True}
source = tokenizer("The dog sees a small cat.", **options).input_ids
target = tokenizer("A dog sees.", **options).input_ids
outputs = model(input_ids=source, decoder_input_ids=target)
VIEW(
    encoder_attention=outputs.encoder_attentions,
    decoder_attention=outputs.decoder_attentions,
    cross_attention=outputs.cross_attentions,
    encoder_tokens=tokenizer.convert_ids_to_tokens(source[0]),
    decoder_tokens=tokenizer.convert_ids_to_tokens(target[0]),
)
"""
NEURONS = """
name = "NAME"
model = KINDModel.from_pretrained(name)
tokenizer = KINDTokenizer.from_pretrained(name)
show(model, "TYPE", tokenizer, SENTENCES, display_mode="dark")
"""


def _pair(view, call):
    imports = (
        f"from bertviz import {view}\nfrom transformers import BertTokenizer, BertModel, utils"
    )
    return [imports, PAIR.replace("VIEW", view), QUIET + BERT + call]


def _alone(view, name, kind):
    imports = (
        f"from bertviz import {view}\nfrom transformers import {kind}Tokenizer, {kind}Model, utils"
    )
    return [imports, QUIET + _filled(ALONE, VIEW=view, NAME=name, KIND=kind)]


def _neurons(name, kind, **words):
    imports = f"from bertviz.transformers_neuron_view import {kind}Model, {kind}Tokenizer"
    return [
        f"{imports}\nfrom bertviz.neuron_view import show",
        _filled(NEURONS, NAME=name, KIND=kind, **words),
    ]


def _filled(code, **words):
    for name, word in words.items():
        code = code.replace(name, word)
    return code


SENTENCES = '"The dog sat on the mat", "The dog lay on the rug"'
NOTEBOOKS = {
    "head_view_bert": _pair(
        "head_view", f"draw(model, tokenizer, {SENTENCES}, layer=1, heads=[0, 2])"
    ),
    "model_view_bert": _pair(
        "model_view", f'draw(model, tokenizer, {SENTENCES}, display_mode="dark")'
    ),
    "model_view_bert without delimiters": _pair(
        "model_view",
        f'draw(model, tokenizer, {SENTENCES}, without_delimiters=True, display_mode="dark")',
    ),
    "head_view_gpt2": _alone("head_view", "gpt2", "GPT2"),
    "model_view_xlnet": _alone("model_view", "xlnet-base-cased", "XLNet"),
    "head_view_bart": [_filled(BOTH, VIEW="head_view", NAME="facebook/bart-large-cnn")],
    "model_view_encoder_decoder": [
        _filled(BOTH, VIEW="model_view", NAME="Helsinki-NLP/opus-mt-en-de")
    ],
    "neuron_view_bert": _neurons(
        "bert-base-uncased", "Bert", TYPE="bert", SENTENCES=SENTENCES + ", layer=1, head=0"
    ),
    "neuron_view_gpt2": _neurons(
        "gpt2", "GPT2", TYPE="gpt2", SENTENCES='"She bought apples, pears,"'
    ),
}
UNCHANGED = ("neuron", "bart", "encoder_decoder")
"""Of these the import alone is other."""


def _bert_tokenizer():
    from transformers import BertTokenizer

    pieces = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *LETTERS,
        *(f"##{letter}" for letter in LETTERS),
    ]
    return BertTokenizer(vocab={piece: number for number, piece in enumerate(pieces)})


def _gpt2_tokenizer():
    from transformers import GPT2Tokenizer

    pieces = ["<|endoftext|>", *LETTERS, "Ġ"]
    return GPT2Tokenizer(vocab={piece: number for number, piece in enumerate(pieces)}, merges=[])


def _xlnet_tokenizer():
    from transformers import XLNetTokenizer

    pieces = ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "▁", *LETTERS]
    return XLNetTokenizer(vocab=[(piece, -1.0) for piece in pieces])


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    """A folder with tiny models under the names of the hub, which a folder of that name comes
    before.
    """
    folder = tmp_path_factory.mktemp("hub")
    longer = {"vocab_size": 160, "max_position_embeddings": 128}
    made = {
        "bert-base-uncased": (tiny_model("bert", **longer), _bert_tokenizer()),
        "gpt2": (tiny_model("gpt2", vocab_size=160, n_positions=128), _gpt2_tokenizer()),
        "xlnet-base-cased": (tiny_model("xlnet", vocab_size=160), _xlnet_tokenizer()),
        "facebook/bart-large-cnn": (tiny_model("bart", **longer), _gpt2_tokenizer()),
        "Helsinki-NLP/opus-mt-en-de": (tiny_model("marian", **longer), _xlnet_tokenizer()),
    }
    for name, parts in made.items():
        for part in parts:
            part.save_pretrained(folder / name)
    return folder


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_notebooks_of_bertviz_run_once_rewritten(name, hub, tmp_path, monkeypatch):
    shown = _run(name, hub, tmp_path, monkeypatch, rewrites=True)
    assert len(shown) == 1
    assert "srcdoc" in shown[0].data


@pytest.mark.parametrize(
    "name", [name for name in NOTEBOOKS if any(part in name for part in UNCHANGED)]
)
def test_of_some_the_import_alone_is_other(name, hub, tmp_path, monkeypatch):
    assert len(_run(name, hub, tmp_path, monkeypatch, rewrites=False)) == 1


def _run(name, hub, tmp_path, monkeypatch, *, rewrites):
    """What the cells of a notebook display."""
    import IPython.display

    shown = []
    monkeypatch.setattr(IPython.display, "display", lambda *given, **_: shown.extend(given))
    monkeypatch.chdir(hub)
    cells = NOTEBOOKS[name]
    if rewrites:
        made = [
            {
                "cell_type": "code",
                "execution_count": None,
                "metadata": {},
                "outputs": [],
                "source": cell,
            }
            for cell in cells
        ]
        old = tmp_path / "old.ipynb"
        old.write_text(
            json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 4})
        )
        target, lines = rewrite_notebook(old)
        assert lines
        cells = [
            "".join(cell["source"])
            for cell in json.loads(target.read_text(encoding="utf-8"))["cells"]
        ]
    else:
        cells = [cell.replace("from bertviz", "from headscope.bertviz") for cell in cells]
    names = {}
    for cell in cells:
        exec(cell, names)
    return shown

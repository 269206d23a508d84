"""Time series: patches named by channel and steps, with the weights of the model itself."""

import re

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.capturing import capture_encoded
from headscope.errors import CaptureError, TextError
from headscope.testing import tiny_model

from ..close import assert_close

STEPS, PATCH = 40, 8


def series_of(channels):
    return np.random.default_rng(channels).normal(size=(STEPS, channels))


def own_weights(model, inputs):
    """What a model returns itself under eager attention: ``[channel head query key]`` each."""
    model.set_attn_implementation("eager")
    with torch.no_grad():
        returned = model(**inputs, output_attentions=True)
    model.set_attn_implementation("sdpa")
    return [weights.numpy() for weights in returned.attentions]


def check_channels(record, own, channels):
    """Weights within each channel are the model's own, and there are none between channels."""
    patches = STEPS // PATCH
    for layer, weights in enumerate(own):
        held = record["self"].weights(layer=layer).copy()
        for channel in range(channels):
            at = slice(channel * patches, (channel + 1) * patches)
            assert np.abs(held[:, at, at] - weights[channel]).max() < 1e-5
            held[:, at, at] = 0
        assert not held.any()


def test_channels_of_patchtst_lie_side_by_side():
    model, values = tiny_model("patchtst"), series_of(2)
    record = hs.capture(model, series=values)
    own = own_weights(model, {"past_values": torch.tensor(values[None], dtype=torch.float32)})
    check_channels(record, own, 2)
    tokens = record["self"].query
    assert tokens.grid == (2, 5)
    assert tokens.labels[0] == "c0 t0-7"
    assert tokens.labels[8] == "c1 t24-31"
    assert tokens.places[8] == (1, 3)
    assert tokens.times[8] == (24.0, 32.0)
    assert not record.numbered


def tiny_timesfm(version):
    """TimesFM, or TimesFM 2.5, which turns queries and keys by their positions."""
    if version == "1":
        return tiny_model("timesfm")
    from transformers import TimesFm2_5Config, TimesFm2_5Model

    sizes = {"hidden_size": 24, "num_attention_heads": 3, "num_key_value_heads": 3, "head_dim": 8}
    sizes |= {"intermediate_size": 40, "num_hidden_layers": 2, "horizon_length": 8}
    torch.manual_seed(5)
    return TimesFm2_5Model(TimesFm2_5Config(**sizes, patch_length=PATCH, context_length=64)).eval()


@pytest.mark.parametrize("version", ["1", "2.5"])
@pytest.mark.parametrize("channels", [1, 3])
def test_timesfm_reads_each_channel_as_a_series_of_its_own(channels, version):
    model, values = tiny_timesfm(version), series_of(channels)
    record = hs.capture(model, series=values[:, 0] if channels == 1 else values)
    inputs = {
        "past_values": torch.tensor(values.T, dtype=torch.float32),
        "past_values_padding": torch.zeros(channels, STEPS),
    }
    if version == "1":
        inputs["freq"] = torch.zeros(channels, 1, dtype=torch.long)
    check_channels(record, own_weights(model, inputs), channels)
    assert record["self"].query.labels[0] == ("t0-7" if channels == 1 else "c0 t0-7")
    assert record["self"].query.grid == (channels, 5)
    assert not record.numbered


def test_a_patch_is_named_after_the_steps_that_move_it():
    model, values = tiny_model("timesfm"), series_of(3)
    values[0] = 0  # the model scales a channel by its first patch
    changed = values.copy()
    changed[26, 1] += 3
    before, after = (
        hs.capture(model, series=each)["self"].layer(0).values[0] for each in (values, changed)
    )
    moved = np.flatnonzero(np.abs(after - before).max(axis=-1) > 1e-6)
    labels = hs.capture(model, series=values)["self"].key.labels
    assert [labels[number] for number in moved] == ["c1 t24-31"]


def test_a_model_that_fills_up_short_series_asks_for_a_whole_one():
    from transformers import TimesFmModelForPrediction

    model = TimesFmModelForPrediction(tiny_model("timesfm").config).eval()
    with pytest.raises(CaptureError, match="has 16 steps and .* reads 40, filling up shorter ones"):
        hs.capture(model, series=series_of(1)[:16])


def test_series_are_saved(tmp_path):
    record = hs.capture(tiny_model("patchtst"), series=series_of(2))
    hs.save(record, tmp_path / "series.safetensors")
    again = hs.load(tmp_path / "series.safetensors")
    assert again["self"].query == record["self"].query
    assert_close(again["self"].weights(), record["self"].weights())


def test_what_does_not_fit_is_refused():
    wrong = {
        "has 1 channels and PatchTSTModel reads 2": ("patchtst", series_of(1)),
        "has 39 steps and PatchTSTModel reads 40": ("patchtst", series_of(2)[1:]),
        "has 39 steps and TimesFmModel reads patches of 8": ("timesfm", series_of(2)[1:]),
        "BertModel reads no patches of time series": ("bert", series_of(2)),
        "not 3 axes [1, 40, 2]": ("patchtst", series_of(2)[None]),
        "not 1 axes [0]": ("patchtst", []),
        "not finite": ("timesfm", [1.0, float("nan")]),
        "must be numbers [time]": ("timesfm", "no numbers"),
    }
    for message, (family, given) in wrong.items():
        with pytest.raises(CaptureError, match=re.escape(message)):
            hs.capture(tiny_model(family), series=given)
    with pytest.raises(TextError, match="A time series is read alone"):
        hs.capture(tiny_model("patchtst"), None, "a text", series=series_of(2))


@pytest.mark.parametrize("name", ["patchtst", "timesfm"])
def test_a_series_that_is_too_long_is_refused_or_its_last_steps_are_read(name):
    model, series = tiny_model(name), np.random.default_rng(0).normal(size=(56, 2))
    with pytest.raises(CaptureError, match=r"56 steps and \w+ reads 40; .* truncate=True"):
        hs.capture(model, series=series)
    with pytest.warns(UserWarning, match="56 steps and .* reads 40: those before are cut off"):
        record = hs.capture(model, series=series, truncate=True)
    last = hs.capture(model, series=series[16:])
    assert_close(record["self"].weights(), last["self"].weights())
    assert record["self"].query.times[0] == (16.0, 24.0)
    assert last["self"].query.times[0] == (0.0, 8.0)


def test_a_series_in_an_encoding_is_not_cut_by_the_model():
    model = tiny_model("timesfm")
    given = {"past_values": torch.zeros(1, 48), "freq": torch.zeros(1, 1, dtype=torch.long)}
    with pytest.raises(CaptureError, match="has 48 steps and TimesFmModel reads 40; give the last"):
        capture_encoded(model, None, given)

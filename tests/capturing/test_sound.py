"""Frames of sound have the times of the samples they were made of."""

import warnings
import wave

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.capturing import capture_encoded
from headscope.capturing.media.given import parse_sound_input, samples_read
from headscope.errors import CaptureError, FileError
from headscope.testing import tiny_model, tiny_tokenizer

RATE = 8000


@pytest.fixture(scope="module")
def samples():
    return np.random.default_rng(0).uniform(-0.9, 0.9, 410).astype(np.float32)


@pytest.fixture(scope="module")
def extractor():
    from transformers import Wav2Vec2FeatureExtractor

    return Wav2Vec2FeatureExtractor(sampling_rate=RATE, do_normalize=False)


def written(path, samples, *, channels=1, width=2):
    whole = {1: (samples + 1) * 127, 2: samples * 32767, 4: samples * (2.0**31 - 1)}[width]
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(RATE)
        file.writeframes(whole.astype({1: np.uint8, 2: "<i2", 4: "<i4"}[width]).tobytes())
    return path


@pytest.mark.parametrize("name", ["wav2vec2", "hubert", "wavlm"])
def test_frames_of_a_wave_have_their_times(name, samples, extractor):
    record = hs.capture(tiny_model(name), extractor, sound=samples, sampling_rate=RATE)
    tokens = record["self"].query
    frames = tiny_model(name)._get_feat_extract_output_lengths(410)
    assert len(tokens) == frames
    step = 5 * 4 / RATE  # the strides of its convolutions
    np.testing.assert_allclose(tokens.times, [(i * step, (i + 1) * step) for i in range(frames)])
    assert tokens.labels[8] == "0.02 s"
    assert tokens.special == (False,) * frames
    assert tokens.grid is None


def test_a_louder_piece_changes_the_frames_of_its_time(samples, extractor):
    model = tiny_model("wav2vec2")
    louder = samples.copy()
    louder[200:210] += 0.5
    frames = model.feature_extractor(torch.tensor(np.stack([samples, louder])))
    changed = np.flatnonzero((frames[0] - frames[1]).abs().amax(0).detach() > 1e-6)
    tokens = hs.capture(model, extractor, sound=samples, sampling_rate=RATE)["self"].query
    times = [tokens.times[position] for position in changed]
    assert times[0][0] <= 200 / RATE
    assert times[-1][1] >= 210 / RATE
    assert times[-1][1] - times[0][0] < 5 * 5 * 4 / RATE


def test_padding_of_the_shorter_sound_is_cut_off():
    model = tiny_model("wav2vec2")
    waves = torch.randn(2, 400, generator=torch.Generator().manual_seed(0))
    mask = torch.ones(2, 400, dtype=torch.long)
    mask[1, 240:] = 0
    records = capture_encoded(model, None, {"input_values": waves, "attention_mask": mask})
    lengths = model._get_feat_extract_output_lengths(torch.tensor([400, 240])).tolist()
    assert [len(record["self"].query) for record in records] == lengths == [19, 11]
    assert records[1]["self"].query.labels[-1] == "frame 10"
    assert records[1]["self"].query.times is None


def test_whisper_writes_about_frames():
    from transformers import WhisperFeatureExtractor

    extractor = WhisperFeatureExtractor(feature_size=8, hop_length=80, chunk_length=1)
    model = tiny_model("whisper", max_source_positions=100)
    sound = np.sin(np.arange(0, 900, dtype=np.float32))
    options = {"target_tokenizer": tiny_tokenizer(), "target": "she ran"}
    record = hs.capture(model, extractor, sound=sound, sampling_rate=16000, **options)
    assert list(record.stacks) == ["encoder", "decoder", "cross"]
    frames = record["encoder"].query
    assert record["cross"].key == frames
    np.testing.assert_allclose(frames.times, [(i / 100, (i + 1) / 100) for i in range(100)])
    # The sound of 0.056 s ends in the sixth of these frames; what fills the window is no content.
    assert frames.labels[5:7] == ("0.05 s", "0.06 s, padding")
    assert frames.special == (*[False] * 6, *[True] * 94)
    assert record["cross"].query.labels[1:] == ("[CLS]", "s", "h", "e", "r", "a", "n")


def whisper():
    from transformers import WhisperFeatureExtractor

    extractor = WhisperFeatureExtractor(feature_size=8, hop_length=80, chunk_length=1)
    return tiny_model("whisper", max_source_positions=100), extractor


def spectrogram():
    from transformers import ASTFeatureExtractor

    sizes = {"num_mel_bins": 12, "max_length": 100}
    return tiny_model("audio-spectrogram-transformer", **sizes), ASTFeatureExtractor(**sizes)


@pytest.mark.parametrize("make", [whisper, spectrogram])
def test_a_sound_that_is_too_long_is_refused_or_cut(make):
    model, extractor = make()
    sound = np.random.default_rng(0).normal(size=40000).astype(np.float32)
    options = {"sampling_rate": 16000}
    if make is whisper:
        options |= {"target_tokenizer": tiny_tokenizer(), "target": "she ran"}
    with pytest.raises(CaptureError, match=r"2.50 s and the model reads 1.00 s; .*truncate=True"):
        hs.capture(model, extractor, sound=sound, **options)
    with pytest.warns(UserWarning, match=r"2.50 s and the model reads 1.00 s: the rest is cut off"):
        record = hs.capture(model, extractor, sound=sound, truncate=True, **options)
    alone = hs.capture(model, extractor, sound=sound[:16000], **options)
    name = next(iter(record.stacks))
    np.testing.assert_allclose(record[name].weights(0), alone[name].weights(0), atol=1e-6)
    row = {"sound": sound, "sampling_rate": 16000, "target": options.get("target")}
    with pytest.warns(UserWarning, match="input 0 .from 0. was left out: The sound has 2.50 s"):
        assert list(hs.capture_many(model, extractor, [row])) == []


@pytest.mark.filterwarnings("ignore:At least one mel filter")
def test_which_sounds_end_where():
    """Extractors that fill a window cut what is longer; others read a sound of any length."""
    import transformers

    ends = {
        "WhisperFeatureExtractor": 30.0,
        "ClapFeatureExtractor": 10.0,
        "Gemma3nAudioFeatureExtractor": 30.0,
        "ClvpFeatureExtractor": 6.0,
        "UnivNetFeatureExtractor": 10.0,
        "ASTFeatureExtractor": 10.24,
        "Wav2Vec2FeatureExtractor": None,
        "SeamlessM4TFeatureExtractor": None,
        "EncodecFeatureExtractor": None,
    }
    for name, seconds in ends.items():
        extractor = getattr(transformers, name)()
        most = samples_read(extractor)
        assert (None if most is None else most / extractor.sampling_rate) == seconds, name


def test_an_extractor_of_another_length_is_one_error():
    model, extractor = spectrogram()
    extractor.max_length = 140
    with pytest.raises(CaptureError, match=r"'input_values': \[1, 140, 12\].* cannot read them"):
        hs.capture(model, extractor, sound=np.ones(4800, np.float32), sampling_rate=16000)


def test_patches_of_a_spectrogram_have_places():
    model = tiny_model("audio-spectrogram-transformer")
    tokens = capture_encoded(model, None, {"input_values": torch.randn(1, 20, 12)})[0]["self"].query
    assert tokens.grid == (5, 3)
    assert tokens.labels[:5] == ("[CLS]", "[DISTILLATION]", "r0c0", "r1c0", "r2c0")


def test_each_head_of_wavlm_has_weights_of_its_own():
    """The model returns their mean."""
    model = tiny_model("wavlm")
    sound = torch.randn(1, 400, generator=torch.Generator().manual_seed(0))
    record = capture_encoded(model, None, {"input_values": sound})[0]
    with torch.no_grad():
        own = model(sound, output_attentions=True).attentions
    for layer, theirs in zip(record["self"], own, strict=True):
        assert np.abs(layer.weights_of().mean(0) - theirs[0, 0].numpy()).max() < 1e-6
        assert np.abs(layer.weights_of()[0] - layer.weights_of()[1]).max() > 0.05


@pytest.mark.parametrize(
    ("channels", "width", "off"), [(1, 2, 1e-4), (2, 2, 1e-4), (1, 1, 3e-2), (1, 4, 1e-6)]
)
def test_a_wav_file_is_read(channels, width, off, samples, tmp_path):
    sides = np.stack(
        [samples + 0.05 * side for side in ((0,) if channels == 1 else (1, -1))], axis=1
    )
    path = written(tmp_path / "sound.wav", sides.ravel(), channels=channels, width=width)
    found, rate = parse_sound_input(path, None)()
    assert rate == RATE
    assert found.dtype == np.float32
    assert np.abs(found - samples).max() < off


def test_a_wav_file_is_captured(samples, extractor, tmp_path):
    path = written(tmp_path / "sound.wav", samples)
    model = tiny_model("wav2vec2")
    record = hs.capture(model, extractor, sound=path)
    assert (
        record["self"].query
        == hs.capture(model, extractor, sound=samples, sampling_rate=RATE)["self"].query
    )
    with pytest.raises(CaptureError, match="has 8000 samples a second, not 16000; leave"):
        hs.capture(model, extractor, sound=path, sampling_rate=16000)


@pytest.mark.parametrize(
    ("sound", "rate", "error", "message"),
    [
        ("nowhere.wav", None, FileError, "The sound nowhere.wav does not exist"),
        (np.zeros(5, np.int16), RATE, CaptureError, r"floats with one axis \[sample\], not int16"),
        (np.zeros((5, 2)), RATE, CaptureError, r"not float64 \[5, 2\]; average its channels"),
        (np.zeros(5), None, CaptureError, "pass sampling_rate=, such as 16000"),
        ([[0.1], [0.1, 0.2]], RATE, CaptureError, "give one sound a call"),
        (np.zeros(4), RATE, CaptureError, "0.0005 s, too short for one frame of Wav2Vec2Model"),
        (np.full(5, np.nan), RATE, CaptureError, "values that are not finite"),
        (np.zeros(500), 16000, CaptureError, "16000 samples a second and the model reads 8000"),
    ],
)
def test_what_is_no_sound_is_refused(sound, rate, error, message, extractor):
    with pytest.raises(error, match=message):
        hs.capture(tiny_model("wav2vec2"), extractor, sound=sound, sampling_rate=rate)


def test_a_file_that_is_no_wav_is_refused(tmp_path):
    path = tmp_path / "text.wav"
    path.write_text("")
    with pytest.raises(FileError, match="cannot be read: it is empty or cut; expected a .wav"):
        parse_sound_input(path, None)()
    path.write_text("no sound at all, and no header")
    with pytest.raises(FileError, match="expected a .wav file of PCM samples"):
        parse_sound_input(path, None)()
    with pytest.raises(FileError, match="holds no samples"):
        parse_sound_input(written(tmp_path / "empty.wav", np.zeros(0)), None)()


def test_a_sound_shorter_than_a_window_of_a_spectrogram_is_refused_with_its_seconds():
    from transformers import ASTFeatureExtractor

    extractor = ASTFeatureExtractor(max_length=128, num_mel_bins=16)
    told = r"cannot read a sound of 0.0100 s \(too short: give a longer one\)"
    with pytest.raises(CaptureError, match=told):
        hs.capture(
            tiny_model("audio-spectrogram-transformer"),
            extractor,
            sound=np.zeros(160),
            sampling_rate=16000,
        )


@pytest.mark.parametrize(("seconds", "begun"), [(0.1, 1), (0.11, 1), (0.2, 2), (1.25, 12)])
def test_patches_behind_the_end_of_a_short_sound_are_padding(seconds, begun):
    """Patches begin at every tenth column; one column in 10 ms, of 25 ms."""
    from transformers import ASTConfig, ASTFeatureExtractor, ASTModel

    config = ASTConfig(
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_length=128,
        num_mel_bins=128,
    )
    sound = np.random.default_rng(0).uniform(-0.9, 0.9, round(seconds * 16000))
    with warnings.catch_warnings(action="ignore"):  # of transformers, of filters that hold nothing
        record = hs.capture(
            ASTModel(config).eval(),
            ASTFeatureExtractor(max_length=128),
            sound=sound,
            sampling_rate=16000,
        )
    tokens = record["self"].query
    assert tokens.grid == (12, 12)
    for label, place, special in zip(tokens.labels, tokens.places, tokens.special, strict=True):
        if place is not None:
            assert label.endswith(", padding") == special == (place[0] >= begun), label

"""Arguments and classes that were called otherwise before are taken with a warning."""

import importlib

import numpy as np
import pytest

import headscope.record
from headscope.comparison import align
from headscope.measures import alignment_error_rate, copying, stress
from headscope.patterns import AttentionMaps, QueryKeyTokens
from headscope.record import Tokens


def test_an_argument_under_its_old_name_is_taken_with_a_warning():
    links = {(0, 0), (2, 1), (2, 2)}
    now = alignment_error_rate({(0, 0), (1, 1)}, {(2, 1)}, links=links)
    with pytest.warns(DeprecationWarning, match="found= of alignment_error_rate is called links="):
        before = alignment_error_rate({(0, 0), (1, 1)}, {(2, 1)}, found=links)
    assert before == now


def test_places_of_maps_and_alignments_are_called_what_they_are():
    distances, points = np.array([[0.0, 2.0], [2.0, 0.0]]), np.array([[1.0, 0.0], [-1.0, 0.0]])
    with pytest.warns(DeprecationWarning, match="places= of stress is called points= now"):
        assert stress(distances, places=points) == stress(distances, points)
    effects = np.array([[[1.0, 0.0, 0.0], [0.0, 0.0, -1.0]]])
    with pytest.warns(DeprecationWarning, match="places= of copying is called ids= now"):
        assert copying(effects, places=[0, 2]) == copying(effects, ids=[0, 2])
    aligned = align(Tokens(pieces=("a", "b")), Tokens(pieces=("a", "c", "b")), same_model=True)
    with pytest.warns(DeprecationWarning, match="places goes away in 0.3; it is called span_n"):
        assert aligned.places("b").tolist() == aligned.span_numbers("b").tolist() == [1]


def test_both_names_at_once_are_refused():
    with pytest.raises(TypeError, match="found"):
        alignment_error_rate(set(), set(), links=set(), found=set())


def test_a_class_under_its_old_name_is_taken_with_a_warning():
    with pytest.warns(DeprecationWarning, match="Stored goes away in 0.3; it is called StoredArr"):
        assert headscope.record.Stored is headscope.record.StoredArray
    with pytest.raises(AttributeError, match="headscope.record has no 'Storage'; it has AGAINST"):
        headscope.record.Storage  # noqa: B018


@pytest.mark.parametrize(
    ("package", "old", "now"),
    [
        ("headscope", "Given", "SetWeights"),
        ("headscope.capturing", "Together", "BatchOutcome"),
        ("headscope.capturing", "positions_of", "position_limit"),
        ("headscope.evidence", "length_said", "length_text"),
        ("headscope.evidence", "p_shown", "p_text"),
        ("headscope.interventions", "Given", "SetWeights"),
        ("headscope.norms", "globenc_pieces", "globenc_vectors"),
        ("headscope.patterns", "LeftBehind", "MissingFunction"),
        ("headscope.patterns", "Maps", "AttentionMaps"),
        ("headscope.patterns", "Sides", "QueryKeyTokens"),
        ("headscope.studies", "BestPlace", "BestLayerOrHead"),
        ("headscope.studies", "Explained", "ExplainedText"),
        ("headscope.studies", "Tampering", "CounterfactualAttention"),
    ],
)
def test_names_of_0_1_stand_for_those_of_today(package, old, now):
    module = importlib.import_module(package)
    with pytest.warns(DeprecationWarning, match=f"{package}.{old} goes away in 0.3; .* {now} now"):
        assert getattr(module, old) is getattr(module, now)
    assert old not in module.__all__


def test_the_tokens_of_maps_under_their_old_name_come_with_a_warning():
    tokens = QueryKeyTokens(Tokens(pieces=("a", "b")), Tokens(pieces=("c", "d", "e")))
    maps = AttentionMaps(np.ones((1, 2, 3)) / 3, tokens, np.ones((2, 3), bool))
    with pytest.warns(DeprecationWarning, match="it is called tokens now"):
        assert maps.sides is tokens


def test_the_attention_of_a_faithfulness_study_is_taken_under_its_old_name():
    import headscope as hs
    from headscope.studies import CounterfactualAttention

    with (
        pytest.warns(DeprecationWarning, match="tampering= of faithfulness is called counter"),
        pytest.raises(hs.RecordError, match="confidence"),
    ):
        hs.faithfulness(None, tampering=CounterfactualAttention(), confidence=2)


def test_a_method_under_its_old_name_comes_with_a_warning():
    import headscope as hs

    change = hs.Zero(layer=0)
    with pytest.warns(DeprecationWarning, match=r"Intervention.said goes away in 0.3; .* descript"):
        assert change.said((1, 2)) == change.description((1, 2))

import numpy as np
import pytest
import torch

from headscope.errors import RecordError
from headscope.norms import Norm


def test_it_is_torchs_layer_norm_and_rms_norm(rng):
    gain, shift = rng.standard_normal((2, 7))
    vectors = rng.standard_normal((5, 7))
    given = torch.from_numpy(vectors), (7,), torch.from_numpy(gain)
    layer = torch.nn.functional.layer_norm(*given, torch.from_numpy(shift), 1e-3)
    root = torch.nn.functional.rms_norm(*given, 1e-3)
    ours = Norm(gain=gain, shift=shift, eps=1e-3)
    np.testing.assert_allclose(ours(vectors), layer.numpy(), atol=1e-12)
    ours = Norm(gain=gain, shift=np.zeros(7), eps=1e-3, centred=False)
    np.testing.assert_allclose(ours(vectors), root.numpy(), atol=1e-12)
    assert [Norm(gain=gain, shift=shift).kind, ours.kind] == ["LayerNorm", "RMSNorm"]
    assert Norm(gain=gain, shift=shift, centred=False, divided=False).kind == "scale"


def test_gain_and_shift_of_other_lengths_are_refused():
    with pytest.raises(RecordError, match="gain and shift must be"):
        Norm(gain=np.ones(3), shift=np.ones(4))

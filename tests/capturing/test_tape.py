"""What is read off the tape of a pass, from records that are written by hand: no model runs."""

import types

import pytest
import torch
from torch import nn

from headscope.capturing.calls.call import Call, Layout
from headscope.capturing.walk import ModelModules, WatchedModules
from headscope.capturing.watching._before_positions import (
    BeforePositions,
    find_before,
    is_one,
    with_before,
)
from headscope.capturing.watching._projection import find_projected, too_many, with_projection
from headscope.capturing.watching._routers import find_routers, scores_of, scores_of_steps
from headscope.capturing.watching.tape import ModuleOutputs, ModuleUse, PassReader, Tape
from headscope.errors import CaptureError

from ..close import assert_close

BATCH, HEADS, TOKENS, SIZE = 2, 3, 5, 4
WIDTH = HEADS * SIZE
ATTENTION, MATRIX = nn.Module(), nn.Linear(WIDTH, 7)


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def call_of(context=None, **more):
    context = drawn(BATCH, TOKENS, HEADS, SIZE) if context is None else context
    batch, tokens, heads, size = context.shape
    known = {"module": ATTENTION, "name": "attention", "route": "operators", "cross": False}
    value = drawn(batch, heads, tokens, size, seed=9)
    return Call(**known | {"value": value, "context": context} | more)


def use_of(given, output=None, module=MATRIX):
    return ModuleUse(module, given, output)


def test_the_matrix_that_takes_a_context_is_its_projection():
    call, other = call_of(), call_of(drawn(BATCH, TOKENS, HEADS, SIZE, seed=1))
    use = use_of(call.context.flatten(2).clone(), drawn(BATCH, TOKENS, 7))
    projected = find_projected(use, [other, call])
    assert list(projected.calls) == [call]
    assert projected.order == "right"
    whole = with_projection(projected, use, ATTENTION, {id(MATRIX): "out"})
    assert whole is call
    assert (whole.projection, whole.projection_name) == (MATRIX, "out")
    assert whole.output is use.output


CHANGES = {
    "scaled": lambda context: context * 1.001,
    "narrower": lambda context: context[..., :-1],
    "one text": lambda context: context[:1],
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_matrix_that_takes_other_numbers_is_no_projection(change):
    call = call_of()
    assert find_projected(use_of(CHANGES[change](call.context.flatten(2))), [call]) is None
    assert find_projected(use_of(None), [call]) is None
    assert call.projection is None


def test_the_input_proves_that_heads_come_before_the_batch():
    true = drawn(BATCH, TOKENS, HEADS, SIZE)
    # read as if [head batch ...] were [batch head ...]
    folded = true.permute(2, 0, 1, 3).reshape(HEADS * BATCH, TOKENS, SIZE)
    misread = folded.reshape(BATCH, HEADS, TOKENS, SIZE).transpose(1, 2)
    call = call_of(misread, layout=Layout(open="folded"))
    use = use_of(true.flatten(2))
    projected = find_projected(use, [call])
    assert projected.order == "exchanged"
    assert call.layout.open == "folded"  # nothing is written by looking
    whole = with_projection(projected, use, ATTENTION, {id(MATRIX): "out"})
    assert_close(whole.context, true)
    assert (whole.layout.open, whole.layout.heads_first) == ("", "folded")


def test_numbers_that_are_the_same_either_way_prove_no_order():
    call = call_of(torch.zeros(BATCH, TOKENS, HEADS, SIZE), layout=Layout(open="folded"))
    use = use_of(torch.zeros(BATCH, TOKENS, WIDTH))
    projected = find_projected(use, [call])
    assert projected.order == "either"
    with_projection(projected, use, ATTENTION, {id(MATRIX): "out"})
    assert call.layout.open == "folded"


def test_heads_that_were_computed_one_by_one_are_found_side_by_side():
    heads = nn.ModuleList(nn.Linear(2, 2) for _ in range(HEADS))
    model = nn.ModuleDict({"layer": nn.ModuleDict({"heads": heads})})
    names = {id(module): name for name, module in model.named_modules()}
    whole = drawn(BATCH, TOKENS, HEADS, SIZE)
    calls = [
        call_of(whole[:, :, [head]], module=module, name=f"layer.heads.{head}")
        for head, module in enumerate(heads)
    ]
    use = use_of(whole.flatten(2))
    projected = find_projected(use, calls[::-1])
    assert list(projected.calls) == calls
    joined = with_projection(projected, use, model, names | {id(MATRIX): "out"})
    assert joined.name == "layer"
    assert joined.layout.one_by_one
    assert_close(joined.context, whole)
    # in another order they are no heads of one layer
    assert find_projected(use_of(whole.flip(2).flatten(2)), calls[::-1]) is None


def test_few_calls_may_wait():
    one = call_of()
    assert not too_many([one] * 8)
    assert too_many([one] * 9)
    head = call_of(drawn(BATCH, TOKENS, 1, SIZE))
    assert not too_many([head] * 64)
    assert too_many([head] * 65)


def turned(heads):
    """Pairs of features turned by an angle for each token."""
    angles = torch.arange(1, heads.shape[2] + 1)[:, None] * torch.tensor([1.0, 0.1])
    first, second = heads.chunk(2, -1)
    ahead = first * angles.cos() - second * angles.sin()
    return torch.cat([ahead, second * angles.cos() + first * angles.sin()], -1)


def heads_of(flat):
    return flat.unflatten(-1, (-1, SIZE)).transpose(1, 2)


def made_by(*modules):
    """Uses of three matrices that gave queries, keys and values."""
    return [
        use_of(None, drawn(BATCH, TOKENS, WIDTH, seed=seed), module)
        for seed, module in enumerate(modules)
    ]


MATRICES = [nn.Linear(2, 2) for _ in range(3)]


def test_queries_and_keys_before_positions_are_found_by_their_lengths():
    uses = made_by(*MATRICES)
    queries, keys = (heads_of(use.output) for use in uses[:2])
    call = call_of(query=turned(queries), key=turned(keys))
    before = find_before(call, uses)
    assert_close(before.queries.vectors, queries)
    assert_close(before.keys.vectors, keys)
    assert before.queries.modules == (MATRICES[0],)
    assert before.keys.modules == (MATRICES[1],)
    assert call.query_before is None  # nothing is written by looking
    with_before(call, before)
    assert_close(call.query_before, queries)
    again = find_before(call, uses, before)
    assert again.uses == before.uses
    assert_close(again.keys.vectors, keys)


def test_vectors_of_one_text_are_the_same_memory_however_far_apart_texts_would_lie():
    before = heads_of(drawn(1, TOKENS, WIDTH))
    after = before[0].unsqueeze(0)
    assert before.stride() != after.stride()
    assert is_one(before, after)
    assert not is_one(before, before.clone())
    assert not is_one(before, before.transpose(1, 2).reshape(before.shape))
    assert not is_one(before, before[:, :, :-1])


def test_queries_that_were_multiplied_are_before_positions_too():
    uses = made_by(*MATRICES)
    queries, keys = (heads_of(use.output) for use in uses[:2])
    before = find_before(call_of(query=turned(queries) * 0.5, key=turned(keys)), uses)
    assert torch.allclose(before.queries.vectors, queries * 0.5)


def test_a_norm_names_the_matrix_whose_output_it_took():
    uses = made_by(*MATRICES)
    norm, other = nn.LayerNorm(SIZE), nn.LayerNorm(SIZE)
    given = uses[0].output.unflatten(-1, (HEADS, SIZE))
    normed = ModuleUse(norm, given, given / given.norm(dim=-1, keepdim=True))
    queries, keys = normed.output.transpose(1, 2), heads_of(uses[1].output)
    call = call_of(query=turned(queries), key=turned(keys))
    before = find_before(call, [*uses, normed])
    assert before.queries.modules == (norm, MATRICES[0])
    with_before(call, before)
    assert call.norm == "LayerNorm"
    # a norm of what no matrix of the record gave had been turned already
    stranger = ModuleUse(other, given.clone(), normed.output)
    assert find_before(call, [*uses, stranger]).queries is None


def test_what_nothing_in_the_record_made_is_not_known():
    call = call_of(query=drawn(BATCH, HEADS, TOKENS, SIZE, seed=5), key=drawn(2, 3, 5, 4, seed=6))
    before = find_before(call, made_by(*MATRICES))
    assert before.queries is None
    assert before.keys is None
    assert find_before(call, []).queries is None
    with_before(call, before)


def test_pieces_are_read_one_after_the_other():
    uses = [
        use_of(None, drawn(TOKENS, WIDTH, seed=seed), module)
        for seed, module in enumerate(MATRICES)
    ]
    last = BeforePositions()
    for start, tokens in ((0, 3), (3, 2)):
        queries, keys = (heads_of(use.output[None, start : start + tokens]) for use in uses[:2])
        context = drawn(1, tokens, HEADS, SIZE, seed=8)
        last = find_before(call_of(context, query=turned(queries), key=turned(keys)), uses, last)
        assert_close(last.queries.vectors, queries)
        assert_close(last.keys.vectors, keys)
    assert last.next_piece == (None, 0)


STREAM, NORM, OTHER = nn.Identity(), nn.LayerNorm(6), nn.Linear(6, 6)


def returned(*scores, name="router_logits"):
    """What a model returned."""
    return types.SimpleNamespace(**{name: scores})


GATES = [nn.Linear(3, 2) for _ in range(2)]
GATE_NAMES = {id(gate): f"layers.{number}.gate" for number, gate in enumerate(GATES)}


def test_the_module_that_gave_router_scores_is_found_with_the_part():
    first, second, other = (drawn(BATCH * TOKENS, 4, seed=seed) for seed in range(3))
    outer = nn.Module()
    uses = [
        ModuleUse(GATES[0], output=(None, first)),
        ModuleUse(GATES[1], output=(second,)),
        ModuleUse(outer, output=(other, second)),  # hands on what its part gave
    ]
    routers = find_routers(uses, returned(first, drawn(7, 4), second), outer)
    assert [router and router[:2] for router in routers] == [(GATES[0], 1), None, (GATES[1], 0)]
    scores = scores_of(routers, GATE_NAMES, BATCH)
    assert list(scores) == ["layers.0.gate", "layers.1.gate"]
    assert_close(torch.from_numpy(scores["layers.1.gate"][1]), second[TOKENS:])


def test_router_scores_that_no_module_gave_are_refused():
    uses = [ModuleUse(GATES[0], output=(drawn(10, 4),))]
    with pytest.raises(CaptureError, match="offers no router scores"):
        find_routers(uses, returned(drawn(10, 4)), nn.Module())
    with pytest.raises(CaptureError, match="offers no router scores"):
        find_routers(uses, types.SimpleNamespace(logits=1), nn.Module())


def test_router_scores_of_steps_are_joined_in_their_order():
    steps = [drawn(tokens, 4, seed=tokens) for tokens in (3, 1, 2)]
    uses = [ModuleUse(GATES[0], output=(None, step)) for step in steps]
    joined = scores_of_steps([(GATES[0], 1, steps[0]), None], uses, GATE_NAMES)
    assert list(joined) == ["layers.0.gate"]
    assert_close(torch.from_numpy(joined["layers.0.gate"]), torch.cat(steps))


class Attention(nn.Module):
    """Two matrices, the second of which is used twice as often as the window is long."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, states):
        states = self.first(states)
        for _ in range(16):
            states = self.second(states)
        return states, None


def test_the_window_of_uses_is_short_and_hooks_go_with_the_block():
    module, told = Attention(), []
    watched = WatchedModules.of(ModelModules.of(module))
    states = drawn(2, 5, 6)
    with Tape(watched, told.append) as tape:
        module(states)
        assert [use.module for use in tape.uses] == [module.second] * 8
        assert all(use.given is None for use in tape.uses)  # of matrices nobody asks for it
        assert len(module.second._forward_hooks) == 1
    assert [use.module for use in told] == [module.first] + [module.second] * 16
    assert told[0].given is states
    assert not tape.uses
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())


def test_what_a_hook_of_the_user_makes_of_a_matrix_is_not_what_it_computed():
    module, told = Attention(), []
    handle = module.first.register_forward_hook(lambda *call: call[2] * 2)
    with Tape(WatchedModules.of(ModelModules.of(module)), told.append) as tape:
        module(drawn(2, 5, 6))
        made = tape.uses
        own = module.first.forward(told[0].given)
        assert_close(told[0].output, own)
        assert_close(told[1].given, own * 2)
    handle.remove()
    assert not made


def test_outputs_are_kept_of_the_modules_that_were_named_alone():
    module = Attention()
    kept = ModuleOutputs([module, module.first])
    with Tape(WatchedModules(ModelModules.of(module), (), (), ()), readers=[kept]):
        output, _ = module(drawn(2, 5, 6))
    assert [use.module for use in kept.uses] == [module.first, module]
    assert kept.uses[1].output[0] is output
    assert kept.uses[1].output[1] is None
    assert not module.second._forward_hooks


class Order(PassReader):
    """Notes when modules begin and end."""

    def __init__(self, *modules):
        self.before = self.after = modules
        self.noted = []

    def begun(self, module, args, options):
        self.noted.append(("begun", type(module).__name__))

    def ended(self, module, args, options, output):
        self.noted.append(("ended", type(module).__name__))


def test_readers_share_the_hooks_of_a_module():
    module = Attention()
    one, two = Order(module), Order(module, module.first)
    with Tape(WatchedModules(ModelModules.of(module), (), (), ()), readers=[one, two]):
        assert len(module._forward_hooks) == len(module._forward_pre_hooks) == 1
        module(drawn(2, 5, 6))
    assert one.noted == [("begun", "Attention"), ("ended", "Attention")]
    assert two.noted[1:3] == [("begun", "Linear"), ("ended", "Linear")]
    assert len(two.noted) == 4

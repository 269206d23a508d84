"""Watching a model through transformers' attention interface.

Every attention module gets from ``AttentionInterface.get_interface`` the function that computes
attention. For the length of a ``with`` block what it gets back is wrapped, in this thread and for
this model only. The model keeps its configuration and its own implementation: sdpa stays sdpa.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from inspect import signature
from typing import Any

import torch
from torch import nn

from headscope.capturing.calls.call import Call
from headscope.capturing.observers import SharedPatch, observers, observing
from headscope.capturing.seam import OPERANDS, Edit, alike, edit_of
from headscope.capturing.watching._whole_attention import dense_mask, is_block_mask
from headscope.capturing.watching.running import RunningModules
from headscope.errors import CaptureError, ModelError

ADDING = ("eager", "flex_attention")
"""Implementations that add a mask to the scores, whatever it holds, and hide nothing without
one.
"""


class InterfaceWatch:
    """Reports every attention call that a model makes through the interface while the block is
    open.

    Args:
        running: the model's modules, and which of them is running.
        tell: is called with each `Call`; None if calls are not reported and attention is only
            changed.
        inside: a block to be opened around the model's own attention function and all that is done
            with its result.

    Raises:
        CaptureError: on entering, where transformers is too old to be watched; in a call, where the
            mask has a form that cannot be read.
    """

    def __init__(
        self,
        running: RunningModules,
        tell: Callable[[Call], None] | None,
        inside: Callable[[], Any] = nullcontext,
    ) -> None:
        self._running, self._tell, self._inside = running, tell, inside
        self._outer: InterfaceWatch | None = None
        self._exit = ExitStack()
        self._block_masks: dict[int, tuple[Any, torch.Tensor]] = {}

    def __enter__(self) -> InterfaceWatch:
        with ExitStack() as undo:
            undo.enter_context(INTERFACE.applied())
            self._outer = observers().interface
            undo.enter_context(observing(interface=self))
            self._exit = undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    def wrap(self, function: Callable, implementation: str | None) -> Callable:
        """The model's attention function, observed, and changed only where a session changes it."""
        others = function if self._outer is None else self._outer.wrap(function, implementation)

        def watched(  # noqa: PLR0917 - the signature of the interface
            module: nn.Module,
            query: Any,
            key: Any,
            value: Any,
            attention_mask: Any = None,
            *args: Any,
            **options: Any,
        ) -> tuple:
            if module not in self._running:
                with self._inside():
                    return others(module, query, key, value, attention_mask, *args, **options)
            tensors, edit = (query, key, value, attention_mask), edit_of(module, "interface")
            adds = implementation in ADDING
            if edit is not None:
                applied = _applied(function, implementation, options)
                tensors = self._operands(edit, tensors, applied, adds=adds)
            with self._inside():
                result = function(module, *tensors, *args, **options)
                options = _applied(function, implementation, options)
                if edit is None:
                    if self._tell is not None:
                        self._tell(self._call(module, tensors, options, result, adds=adds))
                    return result
                call = self._call(module, tensors, options, result, adds=adds)
                call = edit.changed(
                    call, with_weights=self._tell is not None or call.weights is not None
                )
                result = (call.context, _weights_like(result[1:], call), *result[2:])
                if self._tell is not None:
                    self._tell(call)
            return result

        return watched

    def _operands(self, edit: Edit, tensors: tuple, options: dict, *, adds: bool) -> tuple:
        """Queries, keys and values as they are to be, and the mask."""
        *operands, mask = tensors
        module, (query, _, _) = edit.module, operands
        call = self._call(module, tensors, options, (query.transpose(1, 2),), adds=adds)
        changed = [edit.operand(*each, call) for each in zip(OPERANDS, operands, strict=True)]
        return (*changed, mask)

    def _dense(self, mask: Any, device: torch.device, name: str) -> torch.Tensor:
        """A block mask as a tensor, made once for all layers that share it."""
        if id(mask) not in self._block_masks:
            # the mask is kept with what was made of it, so that no other can take its id
            self._block_masks[id(mask)] = mask, dense_mask(mask.as_tuple(), device, name)
        return self._block_masks[id(mask)][1]

    def _call(
        self, module: nn.Module, tensors: tuple, options: dict, result: tuple, *, adds: bool
    ) -> Call:
        query, key, value, mask = tensors
        name = self._running.name_of(module)
        if is_block_mask(mask):
            mask = self._dense(mask, query.device, name)
        elif adds and isinstance(mask, torch.Tensor) and not mask.is_floating_point():
            mask = mask.to(query.dtype)  # True is one more, and hides nothing
        if mask is not None and not (isinstance(mask, torch.Tensor) and mask.ndim == 4):
            raise CaptureError(
                f"{name} was handed a mask that is not a tensor [batch head query key], as fused "
                "implementations are; call model.set_attn_implementation('sdpa') before capturing"
            )
        scale = options.get("scaling")
        if scale is None:
            scale = query.shape[-1] ** -0.5
        causal = options.get("is_causal")
        if causal is None:
            causal = getattr(module, "is_causal", True)
        sinks = options.get("s_aux")
        if sinks is None:
            sinks = getattr(module, "sinks", None)
        weights = result[1] if len(result) > 1 else None
        # flex_attention returns sums of rows in the place of weights.
        if not isinstance(weights, torch.Tensor) or weights.ndim != 4:
            weights = None
        return Call(
            module=module,
            name=name,
            route="interface",
            cross=self._running.is_cross(module, query.shape[-2], key.shape[-2]),
            query=query,
            key=key,
            value=value,
            mask=mask,
            scale=float(scale),
            causal=bool(causal) and mask is None and query.shape[-2] > 1 and not adds,
            soft_cap=options.get("softcap"),
            bias=options.get("position_bias"),
            sinks=sinks,
            context=result[0],
            weights=weights,
        )


def _applied(function: Callable, implementation: str | None, options: dict) -> dict:
    """The options without a soft cap that the implementation ignores: transformers passes it on to
    all of them.

    Raises:
        CaptureError: where it may be ignored or not.
    """
    cap = options.get("softcap")
    if cap is None or "softcap" in signature(function).parameters:
        return options
    if implementation != "sdpa":
        raise CaptureError(
            f"The attention implementation {implementation!r} is given a soft cap of {cap:g} and "
            "has no argument named softcap, so that nothing shows whether it applies it; call "
            "model.set_attn_implementation('eager') before capturing"
        )
    return {name: each for name, each in options.items() if name != "softcap"}


def _weights_like(returned: tuple, call: Call) -> Any:
    """The weights of a changed call in place of those that were returned; None where none were."""
    own = returned[0] if returned else None
    if not isinstance(own, torch.Tensor) or own.ndim != 4 or call.weights is None:
        return own  # flex_attention returns the logarithm of each row's sum there
    return alike(call.weights.to(own.dtype), own)


def _replace_interface() -> Callable[[], None]:
    """Let the interface hand out functions that are watched; returned is what undoes it."""
    from transformers.modeling_utils import AttentionInterface

    if not hasattr(AttentionInterface, "get_interface"):
        import transformers

        raise CaptureError(
            f"transformers {transformers.__version__} cannot be watched: it has no "
            "AttentionInterface.get_interface; headscope needs transformers 5.1 or later"
        )
    original = AttentionInterface.get_interface

    def get_interface(self: Any, implementation: str, default: Callable) -> Callable:
        watch = observers().interface
        try:
            function = original(self, implementation, default)
        except KeyError as error:
            if watch is None:
                raise
            raise ModelError(
                f"The model asks for the attention {implementation!r}, which is not installed "
                "here; take another with model.set_attn_implementation('sdpa')"
            ) from error
        return function if watch is None else watch.wrap(function, implementation)

    def undo() -> None:
        AttentionInterface.get_interface = original

    AttentionInterface.get_interface = get_interface  # ty: ignore[invalid-assignment]
    return undo


INTERFACE = SharedPatch(_replace_interface)

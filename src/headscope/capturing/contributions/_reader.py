"""A reader of a pass that follows attention's outputs, and writes of each layer what its tokens
added.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from headscope.capturing.building._put_away import Put, put_away
from headscope.capturing.building._side_tokens import SideTokens
from headscope.capturing.calls.call import Call
from headscope.capturing.calls.visibility import Visibility
from headscope.capturing.contributions._build import refused, write_contributions
from headscope.capturing.contributions._modules import norm_of, remembered
from headscope.capturing.contributions._norm_sites import NormSite
from headscope.capturing.contributions._residual_path import NormUse, ResidualPath
from headscope.capturing.contributions._texts_of_path import TextsOfPath, texts_of
from headscope.capturing.seam import unwatched
from headscope.capturing.watching.tape import ModuleUse, PassReader
from headscope.capturing.watching.watch_plan import ModelModules, is_affine
from headscope.norms import Norm

NUMBERS_TOGETHER = 2**18
"""How many numbers of several layers are worked on together: 2 MiB, which most caches hold."""
NO_PROJECTION = (
    "no matrix takes the output of its heads unchanged (something stands between, or there is none)"
)


class NormsReader(PassReader):
    """Follows the output of each attention while its block is open, and says of each layer what its
    tokens added.

    A builder tells it of each call when it was made (`mark`), and of its layers (`expect`), then or
    later, at the latest before `complete`. A `Watch` that is opened inside tells it of the pass.

    Args:
        modules: of the model.
        with_alti: whether ALTI is computed too.
        put: takes each array that is done, and gives what is kept in its place; None to keep all
            in memory.
    """

    def __init__(
        self, modules: ModelModules, *, with_alti: bool = False, put: Put | None = None
    ) -> None:
        self._modules, self._with_alti, self._put = modules, with_alti, put
        self._waiting: list[ResidualPath] = []
        self._ended: list[ResidualPath] = []
        self._unwritten: list[TextsOfPath] = []
        self._worked_on: list[ResidualPath] = []
        self._norms: dict[tuple[int, int], Norm | None] = {}
        self._paths: dict[int, ResidualPath] = {}
        self.called: dict[int, NormSite] = {}

    def __enter__(self) -> NormsReader:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if error is not None:
            self._clear()

    def mark(self, seen: Call, call: Call, sides: tuple[SideTokens, SideTokens]) -> None:
        """From now on, follow the output of this call into the residual stream.

        Args:
            seen: the call as it was made, with its projection.
            call: the same laid out anew, a row of the batch for each example.
            sides: its tokens.
        """
        if call.number in self.called:  # its layer waited, and is made by itself after all
            return
        site = self.called[call.number] = self._site_of(call)
        if call.projection is None or call.output is None:
            return
        output = call.output.reshape(call.size[0], call.size[2], -1)
        packed = seen.output is not None and seen.output.numel() != output.numel()
        if packed:  # the model has no padding where the layout has
            output = torch.cat(
                [output[example, at] for example, at in enumerate(sides[0].positions)]
            )
        path = self._path(call=call, sides=sides, output=output, packed=packed, site=site)
        path.output = path.hold(output)  # models add the residual into this very tensor
        self._paths[call.number] = path
        self._waiting.append(path)

    def expect(
        self,
        call: Call,
        visibility: Visibility,
        weights: torch.Tensor | None,
        layers: list[dict[str, Any]],
    ) -> None:
        """What is learned of a call goes into its layers.

        Args:
            call: one that was marked.
            visibility: what its queries may look at.
            weights: ``[text head query key]``, if all of them were computed already.
            layers: arguments of `Layer` for each example, to which ``value_norms`` and
                ``contributions`` are added.
        """
        path = self._paths.pop(call.number, None)
        if path is None:
            for layer in layers:
                layer["contributions"] = refused(f"{call.name}: {NO_PROJECTION}")
            return
        path.call, path.visibility, path.weights, path.layers = call, visibility, weights, layers

    def complete(self) -> None:
        """The pass is over, and all layers are there: write what is not yet written."""
        with unwatched():
            self._end(list(self._waiting))
            self._write()
            self._let_go()
        self._clear()

    def _site_of(self, call: Call) -> NormSite:
        """The site of a call: nothing is known of it before its path has ended."""
        return NormSite()

    def _path(self, **known: Any) -> ResidualPath:
        """The beginning of a path, with what was read before."""
        raise NotImplementedError

    def _written(self, path: ResidualPath) -> None:
        """A path has ended and its contributions are written."""
        raise NotImplementedError

    def _norm_of(self, use: ModuleUse, path: ResidualPath) -> NormUse | None:
        key = id(use.module), path.width
        if key not in self._norms:
            self._norms[key] = known_norm_of(use.module, path.width)
        norm, name = self._norms[key], self._modules.names[id(use.module)]
        if norm is None:
            return None
        return NormUse(norm, use.module, name, path.hold(use.given), path.hold(use.output))

    def _end(self, paths: Iterable[ResidualPath]) -> None:
        """These paths have ended: work on those whose layers are there."""
        for path in paths:
            self._waiting.remove(path)
            self._ended.append(path)
        for path in [path for path in self._ended if path.layers]:
            self._ended.remove(path)
            self._work_on(path)

    def _work_on(self, path: ResidualPath) -> None:
        for texts in texts_of(path, with_alti=self._with_alti):
            self._unwritten.append(texts)
            # Layers of a short text are worked on together, which takes a fraction of the time;
            # longer ones fill the processor's cache each by itself.
            if sum(known.size for known in self._unwritten) > NUMBERS_TOGETHER:
                self._write()
        self._worked_on.append(path)
        if not self._unwritten:
            self._let_go()

    def _write(self) -> None:
        write_contributions(self._unwritten)
        self._unwritten.clear()

    def _let_go(self) -> None:
        """All that was worked on is written."""
        for path in self._worked_on:
            self._written(path)
            put_away(path.layers, self._put)
        self._worked_on.clear()

    def _clear(self) -> None:
        for known in (self._waiting, self._ended, self._unwritten, self._worked_on, self._paths):
            known.clear()


def known_norm_of(module: nn.Module, width: int) -> Norm | None:
    """The norm that a module computes, found once for its weights; None where it is none."""
    if is_affine(module):
        return None
    return remembered([module], ("norm", width), lambda: norm_of(module, width))

"""Every slip in the rule of labels changes what is found: the rule is run as it is, and with one
comparison, connective, name or number of it changed, on heads at and around its limits.
"""

import ast
import inspect
import textwrap

import numpy as np
import pytest

from headscope.patterns import Heads, Pattern, Tally, TokenRuns, label

CELLS = [(0, head) for head in range(6)]
SCORES = ((0.9, 0.01), (0.6, 0.35), (0.38, 0.01), (0.45, 0.01), (0.5, 0.5), (0.0, 0.0))
"""Mean and spread over texts of the scores of six heads: clear; above the margin, and not surely;
just below it; above it, and below the threshold; noise; nothing.
"""


def heads_of(texts, *, level=0.3, threshold=0.5, shown=None, runs=0, **options):
    """Heads of known scores against one level of random weights.

    Args:
        texts: how many there are.
        level: of random weights.
        threshold: of the pattern.
        shown: how many of the texts can show the pattern; by default all.
        runs: how many runs of repeated tokens decide instead of the texts.
        **options: of `Heads`.
    """
    pattern = Pattern(
        name="made up",
        says="is made up",
        source="here",
        threshold=threshold,
        score=lambda maps: np.zeros(6),
    )
    rows = Tally((pattern,)).rows

    def values_of(count, known):
        values = np.full((count, len(rows), len(CELLS)), np.nan)
        drawn = np.random.default_rng(0).uniform(-1, 1, known)
        for head, (mean, spread) in enumerate(SCORES):
            values[:known, rows.index("made up"), head] = mean + spread * (drawn - drawn.mean())
        return values

    values = values_of(texts, texts if shown is None else shown)
    tally = Tally.of_values((pattern,), CELLS, values, levels={"made up": level})
    tally.runs = TokenRuns((pattern,), CELLS, values_of(runs, runs)) if runs else None
    return Heads(tally, **options)


def studies():
    """Studies whose numbers lie on either side of each limit, and on it."""
    whole = heads_of(20).all_labels
    yield from (heads_of(texts) for texts in (1, 2, 3, 5, 6, 7, 8, 20))
    yield from (heads_of(20, shown=shown) for shown in (1, 2, 3))
    yield heads_of(2, runs=20, margin=whole[1].excess_low)
    yield heads_of(20, threshold=0.3)
    # On a limit: the score must reach its threshold, the others must be above or below theirs.
    yield heads_of(20, threshold=whole[0].score)
    yield heads_of(20, margin=whole[0].excess)
    yield heads_of(20, margin=whole[0].excess_low)
    yield heads_of(20, margin=whole[1].excess_low)
    yield heads_of(3, margin=heads_of(3).all_labels[1].excess)
    yield heads_of(20, alpha=whole[0].corrected)
    yield heads_of(8, alpha=heads_of(8).all_labels[0].p * 2)


@pytest.fixture(scope="module")
def asked():
    """What the rule is asked in these studies."""
    calls, rule = [], label._label

    def noting(*given):
        calls.append(given)
        return rule(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(label, "_label", noting)
        for study in studies():
            assert study.all_labels
    return calls


SAME = {"reached and independent < rule.needed and (texts >= min(2, rule.texts)) and True"}
"""Without "not sure": so few texts are never sure, since their p cannot be small enough."""


def outcomes(rule, asked):
    found = [rule(*given) for given in asked]
    return [(each.holds, each.candidate, each.only_one_text) for each in found]


FLIPPED = {ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Eq: ast.NotEq}
TURNED = {ast.Gt: ast.Lt, ast.GtE: ast.LtE, ast.Lt: ast.Gt, ast.LtE: ast.GtE}
NAMES = {"excess_low": "excess", "excess": "excess_low", "corrected": "p", "score": "low"}


def slips(node):
    """The slips that one place of the rule may have, each made and undone."""
    if isinstance(node, ast.Compare):
        (own,) = node.ops
        for kinds in (FLIPPED, TURNED):
            if type(own) in kinds:
                node.ops = [kinds[type(own)]()]
                yield f"{ast.unparse(node)}"
        node.ops = [own]
    if isinstance(node, ast.BoolOp):
        own = node.op
        node.op = ast.Or() if isinstance(own, ast.And) else ast.And()
        yield ast.unparse(node)
        node.op = own
        values = node.values
        for number in range(len(values)):
            node.values = [*values[:number], *values[number + 1 :]]
            node.values += [ast.Constant(True)]
            yield ast.unparse(node)
        node.values = values
    if isinstance(node, ast.Constant) and node.value in NAMES:
        own = node.value
        node.value = NAMES[own]
        yield f"{node.value} for {own}"
        node.value = own
    if isinstance(node, ast.Name) and node.id == "min":
        node.id = "max"
        yield "max for min"
        node.id = "min"
    if isinstance(node, ast.Constant) and node.value == 2:
        for other in (1, 3):
            node.value = other
            yield f"{other} for 2"
        node.value = 2


def test_every_slip_of_the_rule_is_seen(asked):
    tree = ast.parse(textwrap.dedent(inspect.getsource(label._label)))
    known = outcomes(label._label, asked)
    assert {True, False} == {holds for holds, _, _ in known}
    survivors, count = [], 0
    for node in ast.walk(tree):
        for slip in slips(node):
            names = dict(vars(label))
            exec(compile(ast.fix_missing_locations(tree), "mutant", "exec"), names)
            count += 1
            if outcomes(names["_label"], asked) == known:
                survivors.append(slip)
    assert count > 20
    assert set(survivors) == SAME

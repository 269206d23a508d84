from hypothesis import given
from hypothesis import strategies as st

from headscope.comparison._alignment import by_edits, edit_pairs

LISTS = st.lists(st.sampled_from("abc"), max_size=9)


def plain(a, b):
    """Levenshtein's distance and the fewest replacements with it, by the textbook's table."""
    table = [[(j, 0) for j in range(len(b) + 1)]]
    for i, first in enumerate(a, 1):
        row = [(i, 0)]
        for j, second in enumerate(b, 1):
            other = int(first != second)
            (up, up_r), (left, left_r), (across, across_r) = table[-1][j], row[-1], table[-1][j - 1]
            row.append(min((up + 1, up_r), (left + 1, left_r), (across + other, across_r + other)))
        table.append(row)
    return table[-1][-1]


def edges(pairs, a, b):
    replaced = sum(i is not None and j is not None and a[i] != b[j] for i, j in pairs)
    return replaced + sum(i is None or j is None for i, j in pairs), replaced


@given(LISTS, LISTS)
def test_the_fewest_edits_and_of_those_the_fewest_replacements(a, b):
    assert edges(edit_pairs(a, b), a, b) == plain(a, b)


@given(LISTS, LISTS)
def test_every_entry_is_used_once_and_in_order(a, b):
    pairs = edit_pairs(a, b)
    assert [i for i, _ in pairs if i is not None] == list(range(len(a)))
    assert [j for _, j in pairs if j is not None] == list(range(len(b)))


@given(LISTS, LISTS)
def test_spans_hold_every_token_once_and_in_order_and_equal_ones_are_equal(a, b):
    spans = by_edits(a, b)
    assert [i for span in spans for i in span.a] == list(range(len(a)))
    assert [j for span in spans for j in span.b] == list(range(len(b)))
    for span in spans:
        assert (span.kind == "both") == bool(span.a and span.b and a[span.a[0]] == b[span.b[0]])
    assert sum(span.kind == "both" for span in spans) == sum(
        i is not None and j is not None and a[i] == b[j] for i, j in edit_pairs(a, b)
    )

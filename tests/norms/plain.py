"""The same definitions written down a second time, in loops over numbers, sharing nothing with the
package.
"""

import math

import numpy as np


def value_vectors(block):
    """f[h][j] as lists of numbers."""
    heads, _, features = len(block.projection), None, block.projection.shape[1]
    keys, model, share = (
        block.values.shape[1],
        block.projection.shape[2],
        heads // len(block.values),
    )
    return [
        [
            [
                sum(
                    block.values[h // share][j][c] * block.projection[h][c][m]
                    for c in range(features)
                )
                for m in range(model)
            ]
            for j in range(keys)
        ]
        for h in range(heads)
    ]


def mean(numbers):
    return sum(numbers) / len(numbers)


def spread(norm, vector):
    if not norm.divided:
        return 1.0
    middle = mean(vector) if norm.centred else 0.0
    return math.sqrt(mean([(x - middle) ** 2 for x in vector]) + norm.eps)


def linear(norm, vector, whole):
    """The norm's linear part with the deviation of another vector, the whole."""
    middle = mean(vector) if norm.centred else 0.0
    deviation = spread(norm, whole)
    return [norm.gain[m] * (x - middle) / deviation for m, x in enumerate(vector)]


def add(*vectors):
    return [sum(parts) for parts in zip(*vectors, strict=True)]


def length(vector):
    return math.sqrt(sum(x * x for x in vector))


class Plain:
    """Every piece of a block as a list."""

    def __init__(self, block):
        self.block = block
        heads, queries, keys = block.weights.shape
        f = value_vectors(block)
        nothing = [0.0] * block.projection.shape[2]
        self.S = [
            [
                add(nothing, *[[block.weights[h][i][j] * x for x in f[h][j]] for h in range(heads)])
                for j in range(keys)
            ]
            for i in range(queries)
        ]
        self.f = f
        self.o = [add(*self.S[i], list(block.bias)) for i in range(queries)]
        self.R, self.own_R, self.p = [], [], []
        for i in range(queries):
            x = list(block.residual[i])
            through = (
                self.S[i]
                if block.before is None
                else [linear(block.before, s, self.o[i]) for s in self.S[i]]
            )
            self.R.append(
                [add(s, x) if block.same and i == j else s for j, s in enumerate(through)]
            )
            self.own_R.append(x)
            o = self.o[i]
            o = (
                o
                if block.before is None
                else add(linear(block.before, o, o), list(block.before.shift))
            )
            p = add(o, x)
            self.p.append(p if block.beside is None else add(p, list(block.beside[i])))
        if block.after is not None:
            self.T = [
                [linear(block.after, r, self.p[i]) for r in row] for i, row in enumerate(self.R)
            ]
            self.own_T = [linear(block.after, x, self.p[i]) for i, x in enumerate(self.own_R)]
            self.y = [add(linear(block.after, p, p), list(block.after.shift)) for p in self.p]
            again = [list(row) for row in block.stream_again]
            self.U = [
                [linear(block.second, t, again[i]) for t in row] for i, row in enumerate(self.T)
            ]

    def mixing(self, pieces, own):
        found = []
        for i, row in enumerate(pieces):
            nothing = [0.0] * len(row[0])
            if self.block.same:
                others, self_ = (
                    add(nothing, *[piece for j, piece in enumerate(row) if j != i]),
                    row[i],
                )
            else:
                others, self_ = add(nothing, *row), own[i]
            found.append(length(others) / (length(others) + length(self_)))
        return found

    def alti(self):
        pieces, own, whole = (
            (self.T, self.own_T, self.y)
            if self.block.after is not None
            else (self.R, self.own_R, self.p)
        )
        found = []
        for i, row in enumerate(pieces):
            size = sum(abs(x) for x in whole[i])

            def near(piece, i=i, size=size):
                return max(
                    0.0, size - sum(abs(y - x) for y, x in zip(whole[i], piece, strict=True))
                )

            shares = [near(piece) for piece in row]
            total = sum(shares) + (0.0 if self.block.same else near(own[i]))
            found.append([share / total if total else 0.0 for share in shares])
        return found


def lengths(pieces):
    return np.array([[length(piece) for piece in row] for row in pieces])


def rolled(maps):
    """Rollout with I, by loops."""
    layers, size = len(maps), len(maps[0])
    steps = [
        [
            [(maps[n][i][j] + (i == j)) / (sum(maps[n][i]) + 1) for j in range(size)]
            for i in range(size)
        ]
        for n in range(layers)
    ]
    found = [steps[0]]
    for step in steps[1:]:
        before = found[-1]
        found.append(
            [
                [sum(step[i][k] * before[k][j] for k in range(size)) for j in range(size)]
                for i in range(size)
            ]
        )
    return np.array(found), steps

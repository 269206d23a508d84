import { expect, test } from "vitest";
import { columnOf, toByte, WEIGHT, withoutKeys } from "../../src/draw/weights";
import { findSinks } from "../../src/state/store/weights";
import { exampleBytes } from "../examples/page";
import { byteWeights } from "./parts";

const WEIGHTS = byteWeights(exampleBytes(3 * 5 * 7, 9), { heads: 3, queries: 5, keys: 7 });
const KEPT = Uint8Array.of(0, 1, 1, 1, 0, 1, 1);

test("every byte comes back from the weight that it stands for", () => {
  expect(Array.from(WEIGHT, toByte)).toEqual([...Array(256).keys()]);
});

test("without some keys each row keeps its sum and the order of the rest", () => {
  const rest = withoutKeys(WEIGHTS, KEPT);
  for (const query of [0, 3, 4]) {
    const [before, after] = [WEIGHTS.row(1, query), rest.row(1, query)];
    const sum = (row: Float32Array) => row.reduce((a, b) => a + b, 0);
    expect(sum(after)).toBeCloseTo(sum(before), 5);
    expect([after[0], after[4]]).toEqual([0, 0]);
    expect(after[2] * before[5]).toBeCloseTo(after[5] * before[2], 5);
    expect(Math.abs(WEIGHT[rest.bytes(1)[query * 7 + 5]] - Math.min(1, after[5]))).toBeLessThan(0.004);
    expect(columnOf(rest, 1, 5)[query]).toBeCloseTo(after[5], 6);
  }
});

test("a row with nothing left is empty", () => {
  const one = byteWeights(Uint8Array.of(255, 0, 0, 100, 100, 0), { heads: 1, queries: 2, keys: 3 });
  expect([...withoutKeys(one, Uint8Array.of(0, 1, 1)).row(0, 0)]).toEqual([0, 0, 0]);
});

test("sinks are the keys that take far more than their part", () => {
  const mean = new Float32Array(20).fill(0.02);
  mean[3] = 0.4;
  mean[0] = 0.3;
  mean[7] = 0.1;
  const found = findSinks(mean);
  expect(found.map(({ key }) => key)).toEqual([3, 0]);
  expect(found[0].part).toBeCloseTo(0.4 / (0.8 + 17 * 0.02), 6);
  expect(findSinks(new Float32Array(5).fill(0.2))).toEqual([]);
  expect(findSinks(new Float32Array(5))).toEqual([]);
});

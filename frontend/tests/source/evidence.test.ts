import { expect, test } from "vitest";
import { loadEvidence } from "../../src/source/heads";
import { exampleEvidence, SCORES } from "../examples/evidence";
import { type Example, examplePage, exampleSource } from "../examples/page";

const load = (example: Example) => loadEvidence(exampleSource(example), example.page);

test("evidence comes as it was written", async () => {
  const evidence = await load(exampleEvidence());
  expect([...(evidence?.numbers.subarray(0, 9) ?? [])]).toEqual(SCORES[0].map(Math.fround));
  expect([...(evidence?.status ?? [])]).toEqual([0, 2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 2, 2, 0, 0]);
  expect(evidence?.stack.name).toBe("self");
});

test("a page without evidence has none", async () => {
  expect(await load(examplePage())).toBeNull();
});

test("evidence that does not fit the page is refused", async () => {
  const { page, chunks } = exampleEvidence();
  const { evidence } = page;
  if (!evidence) throw new Error("the example has none");
  const wrong = { ...evidence, status: { ...evidence.status, shape: [2, 4, 3] } };
  await expect(load({ page: { ...page, evidence: wrong }, chunks })).rejects.toThrow(/2 × 4 × 3; wanted is 2 × 3 × 3/);
  const elsewhere = { ...evidence, stack: "cross" };
  await expect(load({ page: { ...page, evidence: elsewhere }, chunks })).rejects.toThrow(/“cross”, which is not in it/);
  const short = new Map([...chunks, ["numbers", new Uint8Array(8)]]);
  await expect(load({ page, chunks: short })).rejects.toThrow(/8 bytes/);
});

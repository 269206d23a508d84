import { expect, test } from "vitest";
import committed from "../../src/contract/page.ts?raw";
// @ts-expect-error a plain script
import { contractTypes } from "../../tools/contract.mjs";

test("the types are those of the schema; run `npm run contract` after a change", async () => {
  expect(committed).toBe(await contractTypes());
});

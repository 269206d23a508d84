import { expect, test } from "vitest";
import live from "../../src/contract/live.ts?raw";
import page from "../../src/contract/page.ts?raw";
// @ts-expect-error a plain script
import { contractTypes } from "../../tools/contract.mjs";

test("the types are those of the schema; run `npm run contract` after a change", async () => {
  expect(page).toBe(await contractTypes("page"));
  expect(live).toBe(await contractTypes("live"));
});

import { expect, test } from "vitest";
import { distance, movedFacts, movedWords } from "../../src/state/evidence";
import { ticksOf } from "../../src/state/quantity";
import type { PageMoved } from "../../types/page";

const MOVED: PageMoved = {
  label: "distance in nats",
  spread: "5 controls",
  values: [
    [0, 0.25, null],
    [0.5, null, 0.00003],
  ],
  within: [
    [true, false, false],
    [false, false, true],
  ],
  changed: [
    [false, false, false],
    [false, true, false],
  ],
};

test("words say how far a head moved, whether that says anything, and what was changed on purpose", () => {
  expect(movedWords(MOVED, 0, 1)).toBe("moved .25 nats");
  expect(movedWords(MOVED, 1, 2)).toBe("moved 3e-5 nats, within the spread");
  expect(movedWords(MOVED, 1, 1)).toBe("changed on purpose");
  expect(movedWords(MOVED, 0, 2)).toBe("");
});

test("distances are never printed as none", () => {
  expect([0, 0.0004, 0.0031, 0.25, 0.688].map(distance)).toEqual(["0", "4e-4", ".003", ".25", ".69"]);
  expect(ticksOf(movedFacts(MOVED), 0.5).map(([, text]) => text)).toEqual(["0", ".03", ".13", ".25", ".50"]);
});

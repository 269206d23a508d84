import { marksOf } from "../../draw/marks";
import type { AtlasIndex } from "../../source/atlas";

const NO_LABEL = { light: "#6b7686", dark: "#8f9aab" };

const RESTING = new Set(["first-token", "sink", "sink-elsewhere", "delimiter"]);

/** The colour of a head: that of its first label. */
export function headColors(index: AtlasIndex, dark: boolean): string[] {
  const marks = marksOf(
    index.patterns.map(({ name }) => name),
    dark,
  );
  return index.heads.map(({ labels }) => {
    const held = labels.filter(({ holds }) => holds);
    // Most heads rest somewhere; what a head does besides tells it from others.
    const label = held.find(({ name }) => !RESTING.has(name)) ?? held[0];
    const at = index.patterns.findIndex(({ name }) => name === label?.name);
    return at < 0 ? NO_LABEL[dark ? "dark" : "light"] : marks[at].color;
  });
}

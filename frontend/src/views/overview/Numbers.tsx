import { useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import { parseHex } from "../../draw/color";
import { kindColor } from "../../draw/kinds";
import { density, putPixels } from "../../parts/canvas";
import { useWidth } from "../../parts/useWidth";
import type { LoadedKinds } from "../../source/kinds";
import { kindOf, numbersOf, TEN, tenText } from "../../state/kinds";
import type { Store } from "../../state/store";

const STRIP_HEIGHT = 8;

/** The ten numbers of the shown head, each on a strip with a tick for every head. */
export function Numbers({ store }: { store: Store }) {
  const kinds = store.kinds.value;
  const at = store.full.value;
  if (!kinds || at === null) return <div class="ten" />;
  const of = numbersOf(kinds, at);
  const kind = kindOf(kinds, at);
  return (
    <dl class="ten" style={{ "--kind": kind ? kindColor(kind, store.dark.value) : undefined }}>
      {TEN.map(({ name, says, help }) => (
        <div key={name} title={help} data-number={name} data-leads={kind === name || undefined}>
          <dt>{says}</dt>
          <dd>{tenText(name, of(name))}</dd>
          <Strip store={store} kinds={kinds} name={name} />
        </div>
      ))}
    </dl>
  );
}

/** Where all heads lie between the least and the most, and where the shown one does. */
function Strip({ store, kinds, name }: { store: Store; kinds: LoadedKinds; name: string }) {
  const root = useRef<HTMLSpanElement>(null);
  const width = useWidth(root);
  useSignalEffect(() => {
    const canvas = root.current?.querySelector("canvas");
    const at = store.full.value;
    if (!canvas || at === null || width.value === 0) return;
    const scale = density();
    const size = { width: Math.round(width.value * scale), height: Math.round(STRIP_HEIGHT * scale) };
    putPixels(canvas, stripPixels(store, kinds, name, size), size);
  });
  return (
    <span class="strip" ref={root} aria-hidden="true">
      <canvas data-canvas="strip" />
    </span>
  );
}

function stripPixels(
  store: Store,
  kinds: LoadedKinds,
  name: string,
  { width, height }: { width: number; height: number },
): Uint8ClampedArray<ArrayBuffer> {
  const heads = kinds.values.length / kinds.said.columns.length;
  const values = Array.from({ length: heads }, (_, head) => numbersOf(kinds, head)(name));
  const known = values.filter((value) => !Number.isNaN(value));
  // A share runs from 0 to 1; a count of keys from 1 to the most that a head has.
  const [low, top] = name === "keys" ? [1, Math.max(2, ...known)] : [0, 1];
  const place = (value: number) => Math.max(0, Math.min(1, (value - low) / (top - low))) * (width - 2);
  const ticks = new Float32Array(width);
  for (const value of known) ticks[Math.round(place(value))] += 1;
  const pixels = tickPixels(ticks, height, store.dark.value ? 210 : 50);
  const at = store.full.value ?? 0;
  if (!Number.isNaN(values[at]))
    mark(pixels, { width, height }, Math.round(place(values[at])), inkOf(store, kinds, at));
  return pixels;
}

/** A tick for every head, darker where several lie, on a faint ground. */
function tickPixels(ticks: Float32Array, height: number, gray: number): Uint8ClampedArray<ArrayBuffer> {
  const width = ticks.length;
  const pixels = new Uint8ClampedArray(4 * width * height);
  for (let x = 0; x < width; x++) {
    const opacity = ticks[x] > 0 ? Math.min(0.75, 0.2 * ticks[x] + 0.1) : 0.05;
    for (let y = 0; y < height; y++) pixels.set([gray, gray, gray, 255 * opacity], 4 * (y * width + x));
  }
  return pixels;
}

function inkOf(store: Store, kinds: LoadedKinds, head: number): readonly number[] {
  return parseHex(kindColor(kindOf(kinds, head) ?? "none", store.dark.value));
}

function mark(
  pixels: Uint8ClampedArray,
  { width, height }: { width: number; height: number },
  center: number,
  color: readonly number[],
): void {
  for (let y = 0; y < height; y++) {
    for (let x = Math.max(0, center - 1); x <= Math.min(width - 1, center + 1); x++) {
      pixels.set([...color, 255], 4 * (y * width + x));
    }
  }
}

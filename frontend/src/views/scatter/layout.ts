/** Where a dot stands, in CSS pixels from the upper left corner. */
export interface Dot {
  readonly head: number;
  readonly x: number;
  readonly y: number;
}

export interface Scale {
  readonly from: number;
  readonly to: number;
  readonly ticks: readonly number[];
}

/** A scale over all known values, with about so many round ticks. */
export function scaleOf(values: ArrayLike<number>, count = 5): Scale {
  const known = Array.from(values).filter(Number.isFinite);
  const [least, most] = known.length > 0 ? [Math.min(...known), Math.max(...known)] : [0, 1];
  const extent = most > least ? most - least : Math.abs(most) || 1;
  const step = roundStep(extent / count);
  const [from, to] = [least - 0.04 * extent, most + 0.04 * extent];
  const first = Math.ceil(from / step);
  const ticks = Array.from({ length: Math.max(0, Math.floor(to / step) - first + 1) }, (_, at) =>
    Number(((first + at) * step).toPrecision(12)),
  );
  return { from, to, ticks };
}

/** 1, 2 or 5 times a power of ten, at least the wanted step. */
function roundStep(wanted: number): number {
  const power = 10 ** Math.floor(Math.log10(wanted));
  return power * (([1, 2, 5].find((factor) => factor * power >= wanted * 0.999) ?? 10) as number);
}

export function partOf({ from, to }: Scale, value: number): number {
  return (value - from) / (to - from);
}

interface Size {
  readonly width: number;
  readonly height: number;
}

/** A dot for each head of which both numbers are known; y grows upwards. */
export function dotsOf(
  x: ArrayLike<number>,
  y: ArrayLike<number>,
  [across, up]: readonly [Scale, Scale],
  { width, height }: Size,
): readonly Dot[] {
  return Array.from(x, (value, head) => ({
    head,
    x: width * partOf(across, value),
    y: height * (1 - partOf(up, y[head])),
  })).filter((dot) => Number.isFinite(dot.x) && Number.isFinite(dot.y));
}

/** Both scales of a map: a step is as long across as it is upwards. */
export function equalScales(
  x: ArrayLike<number>,
  y: ArrayLike<number>,
  { width, height }: Size,
): readonly [Scale, Scale] {
  const scales = [scaleOf(x), scaleOf(y)];
  const perPixel = Math.max((scales[0].to - scales[0].from) / width, (scales[1].to - scales[1].from) / height);
  const widened = ([width, height] as const).map((size, at): Scale => {
    const middle = (scales[at].from + scales[at].to) / 2;
    return { from: middle - (perPixel * size) / 2, to: middle + (perPixel * size) / 2, ticks: [] };
  });
  return [widened[0], widened[1]];
}

const DIRECTIONS: Readonly<Record<string, readonly [number, number]>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

/** The nearest dot in the direction of an arrow key: those more ahead than aside, and only then the others. */
export function nextDot(dots: readonly Dot[], from: Dot, key: string): Dot | null {
  const direction = DIRECTIONS[key];
  if (!direction) return null;
  const found = dots.map((dot) => {
    const [x, y] = [dot.x - from.x, dot.y - from.y];
    const ahead = x * direction[0] + y * direction[1];
    const aside = Math.abs(x * direction[1]) + Math.abs(y * direction[0]);
    return { dot, ahead, cost: ahead + 2 * aside + (aside > ahead ? ASIDE : 0) };
  });
  const best = found.filter(({ dot, ahead }) => ahead > 0 && dot.head !== from.head).sort((a, b) => a.cost - b.cost)[0];
  return best?.dot ?? null;
}

/** More than any distance, in pixels. */
const ASIDE = 1e6;

export interface Name extends Dot {
  readonly text: string;
}

/** Half the height of a line of text, the width of a character and the room of a dot, in pixels. */
const [LINE, CHARACTER, ROOM] = [6, 6.2, 7];

/** Where names find room beside their dots, those given first before the others; names without room are left out. */
export function placeNames(
  wanted: readonly { readonly dot: Dot; readonly text: string; readonly room?: number }[],
  dots: readonly Dot[],
  { width, height }: Size,
): readonly Name[] {
  const taken: { left: number; right: number; top: number; bottom: number }[] = dots.map(({ x, y }) => ({
    left: x - ROOM,
    right: x + ROOM,
    top: y - ROOM,
    bottom: y + ROOM,
  }));
  const names: Name[] = [];
  for (const { dot, text, room = ROOM } of wanted) {
    const half = (CHARACTER * text.length) / 2;
    const places = [
      [dot.x + room + half, dot.y],
      [dot.x - room - half, dot.y],
      [dot.x, dot.y - room - LINE],
      [dot.x, dot.y + room + LINE],
    ];
    for (const [x, y] of places) {
      const box = { left: x - half, right: x + half, top: y - LINE, bottom: y + LINE };
      const inside = box.left >= 0 && box.right <= width && box.top >= 0 && box.bottom <= height;
      const free = taken.every(
        (other) =>
          box.left >= other.right || box.right <= other.left || box.top >= other.bottom || box.bottom <= other.top,
      );
      if (!inside || !free) continue;
      taken.push(box);
      names.push({ head: dot.head, x, y, text });
      break;
    }
  }
  return names;
}

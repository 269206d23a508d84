/** An arc between two words. */
export interface Ends {
  readonly dependent: number;
  readonly head: number;
}

/** How high each arc runs, from 1: above all arcs that it spans or crosses, shorter ones first. */
export function arcLevels(arcs: readonly Ends[]): number[] {
  const spans = arcs.map(({ dependent, head }) => [Math.min(dependent, head), Math.max(dependent, head)]);
  const levels: number[] = [];
  const order = [...arcs.keys()].sort((a, b) => spans[a][1] - spans[a][0] - spans[b][1] + spans[b][0] || a - b);
  for (const arc of order) {
    const [start, end] = spans[arc];
    // Those without a level yet are no entries.
    const under = levels.filter((_, other) => spans[other][0] < end && spans[other][1] > start);
    levels[arc] = 1 + Math.max(0, ...under);
  }
  return levels;
}

/** How far from the middle of a word the arcs to its dependents begin. */
const ASIDE = 5;
const ROUND = 6;

/** An arc as SVG path: from the head up to the height and down to the middle of the dependent, y downwards. */
export function arcPath(head: number, dependent: number, height: number, base: number): string {
  const way = Math.sign(dependent - head);
  const start = head + ASIDE * way;
  const round = Math.min(ROUND, Math.abs(dependent - start) / 2);
  const top = base - height;
  const bend = `${top} ${start + way * round} ${top}`;
  return `M${start} ${base}V${top + round}Q${start} ${bend}H${dependent - way * round}Q${dependent} ${top} ${dependent} ${top + round}V${base}`;
}

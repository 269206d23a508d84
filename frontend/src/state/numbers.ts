/** The numbers that "3, 17, 20-25" names, of those that there are; null where it is no such list. */
export function readNumberList(text: string, known: readonly number[]): number[] | null {
  const parts = text.split(/[\s,;]+/).filter(Boolean);
  const ranges = parts.map((part) => /^(\d+)(?:-(\d+))?$/.exec(part));
  if (ranges.includes(null)) return null;
  const wanted = (number: number) =>
    ranges.some((range) => range && number >= Number(range[1]) && number <= Number(range[2] ?? range[1]));
  return known.filter(wanted);
}

/** "3, 17, 20-25": numbers that follow each other as a range. */
export function numberList(numbers: readonly number[]): string {
  const ranges: [first: number, last: number][] = [];
  for (const number of numbers) {
    const now = ranges[ranges.length - 1];
    if (now && number === now[1] + 1) now[1] = number;
    else ranges.push([number, number]);
  }
  return ranges.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(", ");
}

/** "43 %", "4.8 %", "<0.1 %" */
export function chance(probability: number | undefined): string {
  if (probability === undefined) return "";
  const part = 100 * probability;
  if (part >= 9.95) return `${Math.round(part)} %`;
  return part >= 0.05 ? `${part.toFixed(1)} %` : "<0.1 %";
}

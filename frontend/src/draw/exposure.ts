export interface ExposureOptions {
  /** Sum of the strengths of all lines. */
  readonly mass: number;
  readonly lineWidth: number;
  /** Height over which the lines are spread. */
  readonly height: number;
  /** Mean coverage aimed at. */
  readonly aim: number;
  readonly most: number;
}

/** The gain that gives every picture the same mean darkness: one head or twelve, 20 tokens or 500. */
export function exposure({ mass, lineWidth, height, aim, most }: ExposureOptions): number {
  const coverage = (mass * lineWidth) / height;
  return coverage > 0 ? Math.min(most, aim / coverage) : most;
}

import { vi } from "vitest";

/** Waits for a check to hold: longer than any page takes on a machine with other work, shorter than a test may. */
export function soon<T>(check: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(check, { timeout: 15_000 });
}

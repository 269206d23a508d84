import { marksOf, NO_MARK, type Mark as Shape } from "../draw/marks";
import type { Store } from "../state/store";

/** The mark of a pattern, or of a head without a label. */
export function Mark({ shape, size = 12 }: { shape: Shape | undefined; size?: number }) {
  const hollow = shape?.hollow ?? false;
  return (
    <svg
      class="mark"
      viewBox="-1 -1 14 14"
      width={size}
      height={size}
      aria-hidden="true"
      style={{ color: shape?.color ?? "var(--faint)" }}
    >
      <path
        d={shape?.path ?? NO_MARK}
        fill={hollow ? "none" : "currentColor"}
        stroke={hollow ? "currentColor" : "none"}
        stroke-width="2"
        stroke-linejoin="round"
      />
    </svg>
  );
}

/** The marks of the patterns that the page knows, in their order. */
export function useMarks(store: Store): readonly Shape[] {
  const patterns = store.evidence.value?.said.patterns ?? [];
  return marksOf(
    patterns.map(({ name }) => name),
    store.dark.value,
  );
}

import type { Store } from "../state/store";

/** What the reader waits for; shown only where it takes long enough to be noticed. */
export function Loading({ store }: { store: Store }) {
  const { waiting, thumbsLeft, stack } = store;
  const all = stack.value.layers.length;
  const map = thumbsLeft.value > 0 && `map, ${all - thumbsLeft.value} of ${all} layers`;
  const words = [waiting.value, map].filter(Boolean).join(" · ");
  return (
    <div class="loading" role="status" data-loading={words || undefined}>
      {words && <span>Loading {words} …</span>}
    </div>
  );
}

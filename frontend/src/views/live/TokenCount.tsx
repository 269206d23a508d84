import type { Signal } from "@preact/signals";

/** How many tokens are written at most. */
export function TokenCount({ count, lengths }: { count: Signal<number>; lengths: readonly number[] }) {
  return (
    <label class="choice row muted">
      <span>tokens</span>
      <select
        data-token-count
        value={count.value}
        onChange={(event) => (count.value = Number(event.currentTarget.value))}
      >
        {lengths.map((length) => (
          <option key={length}>{length}</option>
        ))}
      </select>
    </label>
  );
}

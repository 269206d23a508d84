import type { Signal } from "@preact/signals";

interface TokenCountProps {
  count: Signal<number>;
  lengths: readonly number[];
}

/** How many tokens are written at most. */
export function TokenCount({ count, lengths }: TokenCountProps) {
  return (
    <label class="choice">
      <span>tokens</span>
      <select
        data-token-count
        value={count.value}
        onChange={(event) => {
          count.value = Number(event.currentTarget.value);
        }}
      >
        {lengths.map((length) => (
          <option key={length}>{length}</option>
        ))}
      </select>
    </label>
  );
}

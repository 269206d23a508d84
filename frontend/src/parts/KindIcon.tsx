import { KIND_LOOKS, type KindName } from "../draw/kinds";

/** A small picture of a pattern, so that colour is never alone. */
export function KindIcon({ kind }: { kind: KindName }) {
  return (
    <svg class="kind-icon" viewBox="0 0 12 12" aria-hidden="true">
      <path d={KIND_LOOKS[kind].icon} />
    </svg>
  );
}

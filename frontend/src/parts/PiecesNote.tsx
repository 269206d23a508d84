import type { Store } from "../state/store";

/** Where words are wanted: that what is shown here is still in their pieces. */
export function PiecesNote({ store }: { store: Store }) {
  return store.pieced.value ? (
    <small
      class="view-note"
      data-pieces
      title="Whole words are wanted: neurons belong to a piece of a word, and small pictures are made of pieces"
    >
      {" "}
      · in pieces of words
    </small>
  ) : null;
}

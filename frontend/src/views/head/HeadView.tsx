import type { ViewParts } from "../../parts/mount";
import { reportDrawn } from "../../parts/Themed";
import { Picture } from "./Picture";
import { SinkNote } from "./Summary";

/** The attention of one layer: lines from query to key, colour = head, strength = weight. */
export function HeadView({ store, room }: ViewParts) {
  return (
    <>
      <Picture
        store={store}
        room={room}
        onDrawn={(canvas, shown) => reportDrawn(canvas, store, shown, { lines: String(store.summary.value.lines) })}
      />
      <SinkNote store={store} />
    </>
  );
}

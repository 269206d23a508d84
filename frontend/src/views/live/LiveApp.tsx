import { useComputed, useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { followSize } from "../../parts/followSize";
import type { ViewParts } from "../../parts/mount";
import type { Live } from "../../state/live";
import { App } from "../app/App";
import { LiveContext } from "./HeadChanges";
import { LiveBar } from "./LiveBar";
import { listenToChanges } from "./listen";

/** A picture is no lower than this, whatever stands above it. */
const LOWEST_PICTURE = 320;

/** All views with the bar of a model above them; `keys` is where the key of changes is listened to. */
export function liveApp(live: Live, keys: EventTarget = document) {
  return function LiveApp({ store, room }: ViewParts) {
    const bar = useRef<HTMLDivElement>(null);
    const taken = useSignal(0);
    live.attach(store);
    const left = useComputed(() => Math.max(LOWEST_PICTURE, room.value - taken.value));
    useEffect(() => {
      if (!bar.current) return;
      const element = bar.current;
      const stopSize = followSize(element, () => {
        taken.value = Math.min(element.offsetHeight, LOWEST_PICTURE);
      });
      const stopChanges = listenToChanges(element, store, live, keys);
      return () => {
        stopSize();
        stopChanges();
      };
    }, [store, taken]);
    useSignalEffect(() => {
      store.said.value = live.said.value;
    });
    return (
      <LiveContext.Provider value={live}>
        <App store={store} room={left}>
          <div ref={bar} class="live-place">
            <LiveBar live={live} store={store} />
          </div>
        </App>
      </LiveContext.Provider>
    );
  };
}

import { useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { ViewParts } from "../../parts/mount";
import type { Live } from "../../state/live";
import { App } from "../app/App";
import { LiveContext } from "./HeadChanges";
import { LiveBar } from "./LiveBar";
import { listenToChanges } from "./listen";

/** All places with a model in a column at their left; `keys` is where the key of changes is listened to. */
export function liveApp(live: Live, keys: EventTarget = document) {
  return function LiveApp({ store, room }: ViewParts) {
    const bar = useRef<HTMLDivElement>(null);
    live.attach(store);
    useEffect(() => {
      if (!bar.current) return;
      const element = bar.current;
      return listenToChanges(element, store, live, keys);
    }, [store]);
    useSignalEffect(() => {
      store.said.value = live.said.value;
    });
    return (
      <LiveContext.Provider value={live}>
        <App store={store} room={room}>
          <div ref={bar} class="live-place">
            <LiveBar live={live} store={store} />
          </div>
        </App>
      </LiveContext.Provider>
    );
  };
}

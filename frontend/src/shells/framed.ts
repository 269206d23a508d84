import { type FollowTheme, followSystemTheme } from "../parts/theme";
import type { FromFrame, ToFrame } from "./messages";

// A page inside a frame of a notebook: its height follows from what it shows, its colours from what is around it.

export function isFramed(): boolean {
  return window.parent !== window;
}

/** Tells the notebook how much height the element takes, now and whenever that changes. */
export function reportHeight(element: HTMLElement): void {
  const tell = () => {
    const message: FromFrame = { headscope: "frame", height: Math.ceil(element.getBoundingClientRect().height) };
    window.parent.postMessage(message, "*");
  };
  new ResizeObserver(tell).observe(element);
  // Observers are silent in a frame that is out of sight, which would jump when it comes into sight.
  for (const delay of OUT_OF_SIGHT) setTimeout(tell, delay);
}

/** Milliseconds until what a page shows first has been laid out, on fast and slow machines. */
const OUT_OF_SIGHT: readonly number[] = [100, 1000, 4000];

/** The colours of the notebook around the frame, or of the system where it says nothing. */
export const followParentTheme: FollowTheme = (report) => {
  let system = false;
  let host: boolean | null = null;
  const tell = () => report(host ?? system);
  const onMessage = ({ data, source }: MessageEvent<ToFrame | null>) => {
    if (source !== window.parent || data?.headscope !== "host") return;
    host = typeof data.dark === "boolean" ? data.dark : null;
    tell();
  };
  addEventListener("message", onMessage);
  const stopSystem = followSystemTheme((dark) => {
    system = dark;
    tell();
  });
  return () => {
    removeEventListener("message", onMessage);
    stopSystem();
  };
};

import type { FromFrame, ToFrame } from "../parts/theme";
import { hostDark, watchHost } from "../parts/theme";

// The script in the notebook around a frame: gives every frame of ours the height that it asks for and tells it the
// colours around it. It stands before each frame and acts once for each document.

declare global {
  interface Window {
    /** Null until the first frame has told its height, then what ends the watch over the colours. */
    headscopeFrames?: (() => void) | null;
  }
}

if (window.headscopeFrames === undefined) {
  window.headscopeFrames = null;
  addEventListener("message", ({ data, source }: MessageEvent<FromFrame | null>) => {
    const height = data?.headscope === "frame" ? Number(data.height) : 0;
    const frame = height > 0 && frames().find(({ contentWindow }) => contentWindow === source);
    if (!frame) return;
    // Only now: in a saved fragment this script stands before the body.
    window.headscopeFrames ??= watchHost(document, () => frames().forEach(tell));
    frame.style.height = `${height}px`;
    tell(frame);
  });
}

function frames(): HTMLIFrameElement[] {
  return [...document.querySelectorAll<HTMLIFrameElement>("iframe[data-headscope-frame]")];
}

function tell(frame: HTMLIFrameElement): void {
  const message: ToFrame = { headscope: "host", dark: hostDark(document) };
  // A sandboxed frame has no origin that could be named.
  frame.contentWindow?.postMessage(message, "*");
}

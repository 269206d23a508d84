import { vi } from "vitest";

/** What is drawn: its bytes, row after row. */
export class FakeImageData {
  constructor(
    readonly data: Uint8ClampedArray,
    readonly width: number,
  ) {}
}

/** Puts something in the place of what jsdom lacks: layout and a canvas. */
export function fakeCanvas(width = 60, putImageData: (image: FakeImageData) => void = () => {}): void {
  vi.stubGlobal(
    "ResizeObserver",
    class {
      observe() {}
      disconnect() {}
    },
  );
  vi.stubGlobal("ImageData", FakeImageData);
  vi.stubGlobal("matchMedia", () => Object.assign(new EventTarget(), { matches: false }));
  vi.spyOn(HTMLElement.prototype, "clientWidth", "get").mockReturnValue(width);
  vi.spyOn(HTMLCanvasElement.prototype, "getContext").mockImplementation(
    () => ({ putImageData }) as unknown as RenderingContext & null,
  );
}

import type { Signal } from "@preact/signals-core";
import { messageOf, PageError } from "../source/source";

/** Has the browser save a file. */
export function saveFile(file: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Saves a file that is made first, and says how that goes. */
export async function saveMade(said: Signal<string>, name: string, make: () => Promise<Blob>): Promise<void> {
  said.value = "on its way …";
  try {
    saveFile(await make(), name);
    said.value = `saved ${name}`;
  } catch (error) {
    said.value = messageOf(error);
  }
}

/** What a canvas shows, as the bytes of a file of this type. */
export async function bytesOf(canvas: HTMLCanvasElement, type: string): Promise<Uint8Array<ArrayBuffer>> {
  const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done, type, 0.9));
  // A browser that does not know the type gives a PNG.
  if (blob?.type !== type) throw new PageError(`This browser cannot write ${type}; Chromium and Firefox can.`);
  return new Uint8Array(await blob.arrayBuffer());
}

// Still pictures as one that moves: a WebP file is a list of chunks, and an animated one holds those of the stills.

/** What a still picture holds beside its pixels is not taken. */
const PIXELS = ["ALPH", "VP8 ", "VP8L"];

/** An animated WebP that begins again and again, of frames of one size, each with the milliseconds that it stays. */
export function animatedWebp(
  frames: readonly (readonly [still: Uint8Array<ArrayBuffer>, wait: number])[],
  { width, height }: { width: number; height: number },
): Blob {
  const size = [...little(width - 1, 3), ...little(height - 1, 3)];
  const ANIMATED = 2;
  const chunks = [
    chunk("VP8X", [ANIMATED, 0, 0, 0, ...size]),
    chunk("ANIM", [0, 0, 0, 255, 0, 0]),
    ...frames.map(([still, wait]) => {
      const head = [0, 0, 0, 0, 0, 0, ...size, ...little(wait, 3), 0];
      return chunk("ANMF", [...head, ...pixelChunks(still)]);
    }),
  ];
  const length = chunks.reduce((sum, part) => sum + part.length, 0);
  const start = [...letters("RIFF"), ...little(4 + length, 4), ...letters("WEBP")];
  return new Blob([Uint8Array.from(start), ...chunks], { type: "image/webp" });
}

/** The chunks of a still picture that hold its pixels, as they are. */
function pixelChunks(still: Uint8Array<ArrayBuffer>): number[] {
  const numbers = new DataView(still.buffer, still.byteOffset);
  const kept: number[] = [];
  for (let at = 12; at < still.length; ) {
    const end = at + 8 + 2 * Math.ceil(numbers.getUint32(at + 4, true) / 2);
    if (PIXELS.includes(String.fromCharCode(...still.subarray(at, at + 4)))) {
      for (const byte of still.subarray(at, end)) kept.push(byte);
    }
    at = end;
  }
  return kept;
}

/** A name, a length, and what it holds, filled up to an even number of bytes. */
function chunk(name: string, inside: readonly number[]): Uint8Array<ArrayBuffer> {
  const made = new Uint8Array(8 + 2 * Math.ceil(inside.length / 2));
  made.set([...letters(name), ...little(inside.length, 4)]);
  made.set(inside, 8);
  return made;
}

function letters(text: string): number[] {
  return [...text].map((letter) => letter.charCodeAt(0));
}

/** A number as so many bytes, the lowest first. */
function little(value: number, bytes: number): number[] {
  return Array.from({ length: bytes }, (_, at) => (value >> (8 * at)) & 255);
}

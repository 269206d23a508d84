import { PageError } from "../source/errors";

/** Has the browser save a file. */
export function saveFile(file: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** What a canvas shows, as the bytes of a file of this type. */
export async function bytesOf(canvas: HTMLCanvasElement, type: string): Promise<Uint8Array<ArrayBuffer>> {
  const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done, type, 0.9));
  // A browser that does not know the type gives a PNG.
  if (blob?.type !== type) throw new PageError(`This browser cannot write ${type}; Chromium and Firefox can.`);
  return new Uint8Array(await blob.arrayBuffer());
}

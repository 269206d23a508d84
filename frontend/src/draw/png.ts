// Words into the metadata of a PNG file: chunks of type iTXt (PNG specification, 11.3.3.4).

const HEADER_END = 33;

/** The file with these words in it, after its header. */
export function withWords(png: Uint8Array, words: Readonly<Record<string, string>>): Uint8Array<ArrayBuffer> {
  const chunks = Object.entries(words).map(([keyword, text]) => textChunk(keyword, text));
  const parts = [png.subarray(0, HEADER_END), ...chunks, png.subarray(HEADER_END)];
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function textChunk(keyword: string, text: string): Uint8Array {
  // Keyword, then five zeros: end of it, not compressed, method, no language, no translation.
  const data = new TextEncoder().encode(`iTXt${keyword}\0\0\0\0\0${text}`);
  const chunk = new Uint8Array(data.length + 8);
  const view = new DataView(chunk.buffer);
  view.setUint32(0, data.length - 4);
  chunk.set(data, 4);
  view.setUint32(data.length + 4, checksum(data));
  return chunk;
}

/** CRC-32, as PNG and zip have it. */
export function checksum(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return (crc ^ 0xffffffff) >>> 0;
}

import { PageError } from "./errors";

type Bytes = Uint8Array<ArrayBuffer>;

export function fromBase64(text: string): Bytes {
  const native = (Uint8Array as unknown as { fromBase64?: (text: string) => Bytes }).fromBase64;
  if (native) return native.call(Uint8Array, text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

export async function gunzip(bytes: Bytes): Promise<Bytes> {
  const stream = new DecompressionStream("gzip");
  const writer = stream.writable.getWriter();
  const [unpacked] = await Promise.all([
    new Response(stream.readable).arrayBuffer(),
    writer.write(bytes),
    writer.close(),
  ]);
  return new Uint8Array(unpacked);
}

/** Base64 of gzip, as chunks stand in a page. */
export async function unpack(name: string, text: string): Promise<Bytes> {
  try {
    return await gunzip(fromBase64(text.trim()));
  } catch (cause) {
    throw new PageError(`The data “${name}” in this page cannot be unpacked: the file is damaged. Write it again.`, {
      cause,
    });
  }
}

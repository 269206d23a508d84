// Pictures and sounds that a reader chooses, as a model is given them: made in the page, so that none of their many
// forms has to be read by Python.

/** Longer sides than this are shrunk: no model looks at more. */
const LONGEST_SIDE = 1536;
const READ_AS_THEY_ARE = ["image/png", "image/jpeg"];
const HEADER = 44;

/** A picture as PNG or JPEG in base64: as it is, or redrawn where it is of another kind or too large. */
export async function readPicture(file: File, most: number): Promise<string> {
  if (READ_AS_THEY_ARE.includes(file.type) && file.size <= most) return base64Of(await file.arrayBuffer());
  const picture = await createImageBitmap(file).catch(() => {
    throw new Error(`“${file.name}” is no picture that this browser can read.`);
  });
  const part = Math.min(1, LONGEST_SIDE / Math.max(picture.width, picture.height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(picture.width * part));
  canvas.height = Math.max(1, Math.round(picture.height * part));
  canvas.getContext("2d")?.drawImage(picture, 0, 0, canvas.width, canvas.height);
  const drawn = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, "image/jpeg", 0.95));
  if (!drawn || drawn.size > most) throw new Error(`“${file.name}” is too large.`);
  return base64Of(await drawn.arrayBuffer());
}

/** A sound as WAV in base64, one channel of as many samples a second as the model hears. */
export async function readSound(file: File, rate: number, most: number): Promise<string> {
  const sound = await new OfflineAudioContext(1, 1, rate).decodeAudioData(await file.arrayBuffer()).catch(() => {
    throw new Error(`“${file.name}” is no sound that this browser can read.`);
  });
  const channels = Array.from({ length: sound.numberOfChannels }, (_, at) => sound.getChannelData(at));
  const samples = Float32Array.from({ length: sound.length }, (_, at) => {
    return channels.reduce((sum, channel) => sum + channel[at], 0) / channels.length;
  });
  const file16 = wavOf(samples, rate);
  if (file16.byteLength > most)
    throw new Error(`“${file.name}” lasts ${Math.round(sound.duration)} seconds: too long.`);
  return base64Of(file16);
}

/** Samples from -1 to 1 as a WAV file of one channel, 16 bits each. */
export function wavOf(samples: Float32Array, rate: number): ArrayBuffer {
  const bytes = new ArrayBuffer(HEADER + 2 * samples.length);
  const view = new DataView(bytes);
  const word = (at: number, text: string) => {
    new Uint8Array(bytes, at, text.length).set(new TextEncoder().encode(text));
  };
  const long = (at: number, value: number) => view.setUint32(at, value, true);
  const short = (at: number, value: number) => view.setInt16(at, value, true);
  word(0, "RIFF");
  long(4, bytes.byteLength - 8);
  word(8, "WAVEfmt ");
  long(16, 16);
  // PCM, one channel
  short(20, 1);
  short(22, 1);
  long(24, rate);
  // bytes a second, bytes and bits of a sample
  long(28, 2 * rate);
  short(32, 2);
  short(34, 16);
  word(36, "data");
  long(40, 2 * samples.length);
  samples.forEach((sample, at) => {
    short(HEADER + 2 * at, Math.round(Math.min(1, Math.max(-1, sample)) * 32767));
  });
  return bytes;
}

/** Bytes as text, a part at a time: a call takes only so many arguments. */
export function base64Of(buffer: ArrayBuffer): string {
  const bytes = new Uint8Array(buffer);
  let binary = "";
  for (let at = 0; at < bytes.length; at += 8192) binary += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(binary);
}

import { useLayoutEffect, useRef } from "preact/hooks";
import { LOOKED, NEGATIVE, POSITIVE } from "../../../contract/values";
import type { AnswerPicture } from "../../../types/answer";
import { parseHex } from "../../draw/color";
import { type AnswerData, inkOf, picturesOf, shareText } from "../../state/partNumbers";
import type { Shown } from "./AnswerView";

/** How much of the picture the strongest heat hides, and the exponent of weaker heat: as in figures. */
const [VEIL, BEND] = [0.72, 0.75];

/** The pictures of a part under the attention of the chosen word; a cross on each patch that is left out. All words have one scale. */
export function Heat({ shown, part, relative }: { shown: Shown; part: number; relative: boolean }) {
  const { data, word, head, dark } = shown;
  const isSigned = relative && word >= 0;
  const mean = inkOf(data, data.every, head);
  const of = (words: readonly number[]) =>
    inkOf(data, words, head).map((value, key) => value - (isSigned ? mean[key] : 0));
  const keys = data.pictures.flatMap((picture) => picture.keys).filter((key) => !data.sinks.includes(key));
  const rows = word < 0 ? [mean] : data.every.map((at) => of([at]));
  const most = rows.reduce((top, row) => keys.reduce((high, key) => Math.max(high, Math.abs(row[key])), top), 1e-9);
  const values = word < 0 ? mean : of([word]);
  const theme = dark ? 1 : 0;
  const [above, below] = isSigned ? [POSITIVE[theme], NEGATIVE[theme]] : [LOOKED[theme], LOOKED[theme]];
  const pixel = (key: number) => {
    const opacity = Math.round(255 * VEIL * Math.min(1, Math.abs(values[key]) / most) ** BEND);
    return [...parseHex(values[key] < 0 ? below : above), opacity];
  };
  return (
    <>
      {picturesOf(data, part).map((picture, at) => (
        <Patches key={at} data={data} picture={picture} pixel={pixel} />
      ))}
      <div
        class="answer-scale fine stack"
        style={{ "--above": above, "--below": below, "--zero": isSigned ? "50%" : 0 }}
      >
        <i />
        <span>{isSigned ? `−${shareText(most)}` : "0"}</span>
        <span>{isSigned ? "less the mean over words" : "attention on the patch"}</span>
        <span>{shareText(most)}</span>
      </div>
    </>
  );
}

type PatchesProps = { data: AnswerData; picture: AnswerPicture["pictures"][number]; pixel: (key: number) => number[] };

function Patches({ data: { sinks }, picture, pixel }: PatchesProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [rows, columns] = picture.grid;
  useLayoutEffect(() => {
    const pixels = new Uint8ClampedArray(4 * rows * columns);
    for (const [at, key] of picture.keys.entries())
      if (!sinks.includes(key)) pixels.set(pixel(key), 4 * picture.places[at]);
    canvas.current?.getContext("2d")?.putImageData(new ImageData(pixels, columns), 0, 0);
  });
  const crosses = picture.keys.flatMap((key, at) => (sinks.includes(key) ? picture.places[at] : []));
  const [height, width] = picture.size;
  return (
    <div class="answer-picture relative" style={{ aspectRatio: `${width} / ${height}` }}>
      {picture.address && <img src={picture.address} alt="As the model saw it" />}
      <canvas ref={canvas} width={columns} height={rows} data-heat />
      <svg viewBox={`0 0 ${columns} ${rows}`} preserveAspectRatio="none" aria-hidden="true">
        {crosses.map((at) => (
          <path key={at} d={`M${(at % columns) + 0.2} ${Math.floor(at / columns) + 0.2}l.6 .6m0-.6l-.6 .6`} />
        ))}
      </svg>
    </div>
  );
}

import { useEffect } from "preact/hooks";
import { type AtlasPlace, headAddress, mapAddress } from "../../state/atlas";

type Beside = readonly [layer: number, head: number] | undefined;

interface HeadNavProps {
  place: AtlasPlace;
  before: Beside;
  after: Beside;
  /** Number of a text that the heads beside show too. */
  text: number | undefined;
}

/** Leads to the map and to the heads beside; Escape leads out, [ and ] to the heads beside. */
export function HeadNav({ place, before, after, text }: HeadNavProps) {
  const { side } = place;
  useEffect(() => {
    const leads: Readonly<Record<string, string | undefined>> = {
      "[": before && headAddress(...before, text, side),
      "]": after && headAddress(...after, text, side),
      Escape: place.text === null || !place.head ? mapAddress(side) : headAddress(...place.head, undefined, side),
    };
    const onKey = ({ key }: KeyboardEvent) => {
      const address = leads[key];
      if (address) location.hash = address;
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [place, side, before, after, text]);
  return (
    <nav aria-label="Heads">
      <a class="quiet" href={mapAddress(side)}>
        ← All heads
      </a>
      {before && (
        <a class="quiet" href={headAddress(...before, undefined, side)} aria-label="Head before">
          ‹
        </a>
      )}
      {after && (
        <a class="quiet" href={headAddress(...after, undefined, side)} aria-label="Head after">
          ›
        </a>
      )}
    </nav>
  );
}

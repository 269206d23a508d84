import { type ComponentProps, Fragment } from "preact";
import { type Ramp, rampGradient } from "../draw/color";
import { KIND_LOOKS, type KindName, kindColor, kindOfLabel } from "../draw/kinds";
import { count } from "../state/words";

/** A small picture of a pattern, so that colour is never alone. */
export function KindIcon({ kind }: { kind: KindName }) {
  return (
    <svg class="kind-icon" viewBox="0 0 12 12" aria-hidden="true">
      <path d={KIND_LOOKS[kind].icon} />
    </svg>
  );
}

/** The icon of the kind that a label says, where it says one. */
export function LabelIcon({ name, dark }: { name: string; dark: boolean }) {
  const kind = kindOfLabel(name);
  return kind ? (
    <span style={{ "--kind": kindColor(kind, dark) }}>
      <KindIcon kind={kind} />
    </span>
  ) : null;
}

interface ClausesProps {
  clauses: readonly { readonly kind: KindName; readonly count: number; readonly text: string }[];
  dark: boolean;
  /** What a clause leads to or does. */
  act: (kind: KindName) => Omit<ComponentProps<"button">, "ref"> & { href?: string };
}

/** "2 look at the next token, 4 at the previous and 3 do none of these.": legend and filter at once. */
export function Clauses({ clauses, dark, act }: ClausesProps) {
  const last = clauses.length - 1;
  return clauses.map(({ kind, count: heads, text }, at) => {
    const does = act(kind);
    const Tag = (does.href ? "a" : "button") as "button";
    return (
      <Fragment key={kind}>
        {at > 0 && at === last && "and "}
        <span class="clause-end">
          <Tag class="clause" data-kind={kind} style={{ "--kind": kindColor(kind, dark) }} {...does}>
            <KindIcon kind={kind} />
            {count(heads)} {text}
          </Tag>
          {at === last ? "." : at < last - 1 && ","}
        </span>{" "}
      </Fragment>
    );
  });
}

interface ScaleProps {
  ramp: Ramp;
  /** What stands under the bar, each at a part (0 to 1) of its length. */
  ticks: readonly (readonly [part: number, text: string])[];
  label: string;
}

/** The colour scale of a picture, as a bar. */
export function Scale({ ramp, ticks, label }: ScaleProps) {
  return (
    <span class="scale stack middle muted" data-scale>
      <span class="scale-label">{label}</span>
      <span class="scale-bar" aria-hidden="true" style={{ "--ramp": rampGradient(ramp) }} />
      <span class="scale-ticks relative">
        {[...new Map(ticks.map(([part, text]) => [text, part]))].map(([text, part]) => (
          <span key={text} style={{ left: `${100 * part}%` }}>
            {text}
          </span>
        ))}
      </span>
    </span>
  );
}

const PICTURES = {
  moon: "M16.5 12.2A7 7 0 0 1 7.8 3.5a7 7 0 1 0 8.7 8.7Z",
  sun: "M6.6 10a3.4 3.4 0 1 0 6.8 0a3.4 3.4 0 1 0-6.8 0M10 2v1.6M10 16.4V18M2 10h1.6M16.4 10H18M4.3 4.3l1.2 1.2M14.5 14.5l1.2 1.2M4.3 15.7l1.2-1.2M14.5 5.5l1.2-1.2",
  save: "M10 3v9m-3.6-3.4L10 12.2l3.6-3.6M3.5 14v2.5h13V14",
};

const LINE = { fill: "none", stroke: "currentColor", "stroke-width": 1.5, "stroke-linecap": "round" } as const;

/** A picture of lines, 20 units wide. */
export function Icon({ of }: { of: keyof typeof PICTURES }) {
  return (
    <svg viewBox="0 0 20 20" width="16" height="16" aria-hidden="true" {...LINE}>
      <path d={PICTURES[of]} />
    </svg>
  );
}

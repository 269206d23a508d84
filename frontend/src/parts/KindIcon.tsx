import { type ComponentProps, Fragment } from "preact";
import { KIND_LOOKS, type KindName, kindColor } from "../draw/kinds";
import { count } from "../state/words";

/** A small picture of a pattern, so that colour is never alone. */
export function KindIcon({ kind }: { kind: KindName }) {
  return (
    <svg class="kind-icon" viewBox="0 0 12 12" aria-hidden="true">
      <path d={KIND_LOOKS[kind].icon} />
    </svg>
  );
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

import type { ComponentChildren } from "preact";

/** A picture of lines, 20 units wide. */
function Icon({ children }: { children: ComponentChildren }) {
  return (
    <svg
      viewBox="0 0 20 20"
      width="16"
      height="16"
      aria-hidden="true"
      fill="none"
      stroke="currentColor"
      stroke-width="1.5"
      stroke-linecap="round"
      stroke-linejoin="round"
    >
      {children}
    </svg>
  );
}

export function Moon() {
  return (
    <Icon>
      <path d="M16.5 12.2A7 7 0 0 1 7.8 3.5a7 7 0 1 0 8.7 8.7Z" />
    </Icon>
  );
}

export function Sun() {
  return (
    <Icon>
      <circle cx="10" cy="10" r="3.4" />
      <path d="M10 2v1.6M10 16.4V18M2 10h1.6M16.4 10H18M4.3 4.3l1.2 1.2M14.5 14.5l1.2 1.2M4.3 15.7l1.2-1.2M14.5 5.5l1.2-1.2" />
    </Icon>
  );
}

export function Save() {
  return (
    <Icon>
      <path d="M10 3v9m-3.6-3.4L10 12.2l3.6-3.6M3.5 14v2.5h13V14" />
    </Icon>
  );
}

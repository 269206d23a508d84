/** What a page in a frame tells the notebook around it: the height that it wants. */
export interface FromFrame {
  readonly headscope: "frame";
  readonly height: number;
}

/** What a notebook tells a frame: whether it is dark, or null where it does not know. */
export interface ToFrame {
  readonly headscope: "host";
  readonly dark: boolean | null;
}

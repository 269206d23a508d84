import type { TreeHead, TreeIndex } from "../../../source/headvis";

/** What all parts of the page of a tree are given. */
export interface TreeView {
  readonly index: TreeIndex;
  readonly dark: boolean;
  readonly head: (layer: number, head: number) => Promise<TreeHead>;
}

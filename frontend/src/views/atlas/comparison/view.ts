import type { ComparisonIndex } from "../../../source/atlasComparison";
import type { AtlasView } from "../parts";

/** What all parts of the page of two atlases are given. */
export interface ComparisonView {
  readonly index: ComparisonIndex;
  readonly a: AtlasView;
  readonly b: AtlasView;
}

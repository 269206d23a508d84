/** Whether the bundle is that of the page of a model: what only that page has is left out of the others. */
declare const OF_MODEL: boolean;
/** The style sheets of a bundle that stands alone in its folder or page. */
declare const CSS_TEXT: string;

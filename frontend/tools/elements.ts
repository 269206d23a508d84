/** What elements are made with in a bundle: with children as arguments, which takes less room than "children:" at each. */
export { Fragment as jsxFragment, h as jsxElement } from "preact";

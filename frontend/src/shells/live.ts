// The shells that ask for their data: anywidget's module has a default export, the server's page calls `serve`.
export { serve } from "./server";
export { default } from "./widget";

import adapt from "./adapt.css";
import inspector from "./inspector.css";
import page from "./page.css";
import picture from "./picture.css";
import toolbar from "./toolbar.css";

/** All styles of the view; what adapts to width and preferences comes last, so that it wins. */
export const styles = [page, toolbar, picture, inspector, adapt].join("\n");

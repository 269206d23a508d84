import { inlineSource } from "../source/source";
import { openPage } from "./show";

// The self-contained page: data in script elements.

const element = document.getElementById("headscope");
if (element) void openPage(element, () => inlineSource(document));

import { render } from "preact";
import { scriptSource } from "../source/atlas";
import { AtlasApp } from "../views/atlas/AtlasApp";
import { atlasStyles } from "../views/atlas/styles";

// An atlas in a folder of files: what it draws comes in scripts beside it.

const element = document.getElementById("headscope");
if (element) {
  const shadow = element.attachShadow({ mode: "open" });
  const style = document.createElement("style");
  style.textContent = atlasStyles;
  const root = document.createElement("div");
  root.className = "root";
  shadow.append(style, root);
  element.style.minHeight = "100vh";
  render(<AtlasApp source={scriptSource(document)} host={element} />, root);
}

// Style sheets as text, minified.
import { readFile } from "node:fs/promises";
import * as esbuild from "esbuild";

export const minifiedCss = {
  name: "minified-css",
  setup(build) {
    build.onLoad({ filter: /\.css$/ }, async ({ path }) => {
      const { code } = await esbuild.transform(await readFile(path, "utf8"), { loader: "css", minify: true });
      return { contents: code.trim(), loader: "text" };
    });
  },
};

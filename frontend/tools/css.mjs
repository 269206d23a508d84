// Style sheets, minified and packed together: they are a sixth of a bundle, and say the same often.
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import * as esbuild from "esbuild";

const SOURCES = fileURLToPath(new URL("../src/", import.meta.url));

/** The plugin, by which a sheet is its place in the pack, and the pack that the bundle reads (src/styles/packed.ts). */
export async function packedCss(has = () => true) {
  const all = await readdir(SOURCES, { recursive: true });
  const paths = all.filter((name) => name.endsWith(".css") && has(name)).sort();
  const sheets = await Promise.all(paths.map(async (name) => minified(await readFile(join(SOURCES, name), "utf8"))));
  const places = new Map(paths.map((name, at) => [join(SOURCES, name), String(at)]));
  const plugin = {
    name: "packed-css",
    setup(build) {
      build.onLoad({ filter: /\.css$/ }, ({ path }) => ({ contents: places.get(path), loader: "text" }));
    },
  };
  const pack = gzipSync(JSON.stringify(sheets), { level: 9 }).toString("base64");
  return { plugin, define: { CSS_PACKED: JSON.stringify(pack) } };
}

async function minified(sheet) {
  return (await esbuild.transform(sheet, { loader: "css", minify: true })).code.trim();
}

// Builds the playground: all examples of the views in one page that opens from disk, without a network.
import { mkdir, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";
import { packedCss, SHEETS } from "./css.mjs";

const root = fileURLToPath(new URL("../", import.meta.url));
const folder = new URL("../playground/", import.meta.url);

const { outputFiles } = await esbuild.build({
  absWorkingDir: root,
  entryPoints: ["tests/examples/playground.ts"],
  outdir: fileURLToPath(folder),
  write: false,
  bundle: true,
  format: "esm",
  target: "es2022",
  charset: "ascii",
  jsx: "automatic",
  jsxImportSource: "preact",
  define: { CSS_PACKED: JSON.stringify(await packedCss(SHEETS.page)), OF_MODEL: "false" },
  logLevel: "warning",
});

const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>Examples</title>
<style>body { margin: 0; font: 14px system-ui } h2 { margin: 24px 20px 4px; font-size: 14px; font-weight: 400 } a { font-weight: 700 }</style>
</head>
<body>
<script type="module">${outputFiles[0].text}</script>
</body>
</html>
`;

await mkdir(folder, { recursive: true });
await writeFile(new URL("index.html", folder), page);
console.log(fileURLToPath(new URL("index.html", folder)));

// Bundles the page shell into one self-running ES module and holds it to its limits.
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import * as esbuild from "esbuild";

const MOST_BYTES = 136_000;
const root = new URL("../", import.meta.url);
const bundle = fileURLToPath(new URL("../src/headscope/views/static/page.js", root));

const minifiedCss = {
  name: "minified-css",
  setup(build) {
    build.onLoad({ filter: /\.css$/ }, async ({ path }) => {
      const { code } = await esbuild.transform(await readFile(path, "utf8"), { loader: "css", minify: true });
      return { contents: code.trim(), loader: "text" };
    });
  },
};

const checkedWrite = {
  name: "checked-write",
  setup(build) {
    build.onEnd(async ({ errors, outputFiles }) => {
      if (errors.length > 0) return;
      const { contents, text } = outputFiles[0];
      const size = `${contents.length} bytes, ${gzipSync(contents, { level: 9 }).length} gzipped`;
      // The bundle stands inside a <script> element, where these would end or confuse it.
      const forbidden = /<\/script|<!--|<script/i.exec(text);
      if (forbidden) throw new Error(`The bundle contains ${forbidden[0]} and cannot stand inside a page.`);
      if (contents.length > MOST_BYTES) throw new Error(`The bundle has ${size}; at most ${MOST_BYTES} are allowed.`);
      await mkdir(dirname(bundle), { recursive: true });
      await writeFile(bundle, contents);
      console.log(`page.js: ${size}`);
    });
  },
};

/** The licences of what is bundled: they ask to stand in every copy, so in every page. */
async function licences() {
  const { dependencies } = JSON.parse(await readFile(new URL("package.json", root), "utf8"));
  const names = Object.keys(dependencies);
  const texts = await Promise.all(names.map((name) => readFile(new URL(`node_modules/${name}/LICENSE`, root), "utf8")));
  const owners = new Map();
  texts.forEach((text, at) => {
    owners.set(text.trim(), [...(owners.get(text.trim()) ?? []), names[at]]);
  });
  return [...owners].map(([text, of]) => `/*! ${of.join(", ")}\n\n${text}\n*/`).join("\n");
}

const context = await esbuild.context({
  absWorkingDir: fileURLToPath(root),
  entryPoints: ["src/shells/page.ts"],
  outfile: bundle,
  write: false,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "ascii",
  legalComments: "none",
  banner: { js: await licences() },
  jsx: "automatic",
  jsxImportSource: "preact",
  plugins: [minifiedCss, checkedWrite],
  logLevel: "warning",
});

if (process.argv.includes("--watch")) {
  await context.watch();
} else {
  await context.rebuild();
  await context.dispose();
}

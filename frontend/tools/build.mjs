// Bundles each shell into one ES module and holds it to its limits.
//     node tools/build.mjs [--watch] [--out FOLDER]
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { basename, join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import * as esbuild from "esbuild";
import { minify } from "terser";
import { cssText, packedCss, SHEETS } from "./css.mjs";
import { shortNames } from "./names.mjs";

/** Bytes that each bundle may have. */
const MOST_BYTES = {
  "page.js": 220_000,
  "live.js": 223_000,
  "model.js": 300_000,
  "atlas.js": 101_500,
  "answer.js": 76_000,
  "frame.js": 1_500,
};
/** frame.js stands in every output of a notebook and holds nothing of others. */
const WITH_LICENCES = ["page.js", "live.js", "model.js", "atlas.js", "answer.js"];
const root = new URL("../", import.meta.url);
const { values: options } = parseArgs({ options: { watch: { type: "boolean" }, out: { type: "string" } } });
const folder = resolve(options.out ?? fileURLToPath(new URL("../src/headscope/views/static/", root)));

const checkedWrite = {
  name: "checked-write",
  setup(build) {
    build.onEnd(async ({ errors, outputFiles }) => {
      if (errors.length > 0) return;
      const banner = await licences();
      await mkdir(folder, { recursive: true });
      for (const { path, text } of outputFiles) {
        const name = basename(path);
        const small = await smaller(text);
        const script = WITH_LICENCES.includes(name) ? `${banner}\n${small}` : small;
        check(name, script);
        await writeFile(path, script);
        console.log(`${name}: ${size(script)}`);
      }
    });
  },
};

function check(name, script) {
  // A bundle stands inside a <script> element, where these would end or confuse it.
  const forbidden = /<\/script|<!--|<script/i.exec(script);
  if (forbidden) throw new Error(`${name} contains ${forbidden[0]} and cannot stand inside a page.`);
  const most = MOST_BYTES[name];
  if (Buffer.byteLength(script) > most) throw new Error(`${name} has ${size(script)}; at most ${most} are allowed.`);
}

/** What esbuild made, once more: terser looks at all of it together, and saves a further hundredth. */
async function smaller(script) {
  const options = {
    module: true,
    ecma: 2022,
    compress: { passes: 4, hoist_funs: true, unsafe_arrows: true, unsafe_methods: true },
  };
  const { code } = await minify(script, { ...options, format: { ascii_only: true } });
  return code;
}

function size(script) {
  return `${Buffer.byteLength(script)} bytes, ${gzipSync(script, { level: 9 }).length} gzipped`;
}

/** The licences of what is bundled: they ask to stand in every copy, so in every page; each text once for all its holders. */
async function licences() {
  const { dependencies } = JSON.parse(await readFile(new URL("package.json", root), "utf8"));
  const holders = new Map();
  for (const name of Object.keys(dependencies)) {
    const text = await readFile(new URL(`node_modules/${name}/LICENSE`, root), "utf8");
    const [copyright] = /^Copyright .+\n\n/m.exec(text) ?? [""];
    const terms = text.replace(copyright, "").trim();
    holders.set(terms, [...(holders.get(terms) ?? []), `${name}: ${copyright.trim()}`]);
  }
  return [...holders].map(([terms, of]) => `/*! ${of.join("\n")}\n\n${terms}\n*/`).join("\n");
}

const common = {
  absWorkingDir: fileURLToPath(root),
  outdir: folder,
  write: false,
  bundle: true,
  minify: true,
  target: "es2022",
  charset: "ascii",
  legalComments: "none",
  mangleProps: await shortNames(root),
  define: { CSS_PACKED: JSON.stringify(await packedCss(SHEETS.page)), OF_MODEL: "false" },
  plugins: [checkedWrite],
  logLevel: "warning",
};

/** Elements as calls with the children as arguments: "children:" at each of them would be 2 % of a bundle. */
const elements = {
  jsx: "transform",
  jsxFactory: "jsxElement",
  jsxFragment: "jsxFragment",
  inject: [fileURLToPath(new URL("elements.ts", import.meta.url))],
  // Else tsconfig.json decides, which says to TypeScript what elements are.
  tsconfigRaw: {},
};

const contexts = await Promise.all([
  esbuild.context({ ...common, ...elements, entryPoints: ["src/shells/page.ts", "src/shells/live.ts"], format: "esm" }),
  esbuild.context({
    ...common,
    ...elements,
    define: { CSS_PACKED: JSON.stringify(await packedCss(SHEETS.model)), OF_MODEL: "true" },
    entryPoints: ["src/shells/model.ts"],
    format: "esm",
  }),
  ...["atlas", "answer"].map(async (name) =>
    esbuild.context({
      ...common,
      ...elements,
      // What scripts beside it hold keeps its names.
      mangleProps: undefined,
      define: { CSS_TEXT: JSON.stringify(await cssText(SHEETS[name])) },
      entryPoints: [`src/shells/${name}.tsx`],
      format: "iife",
    }),
  ),
  // Runs once for each output of a notebook, in the notebook's own document: no name of it may stay behind.
  esbuild.context({ ...common, entryPoints: ["src/shells/frame.ts"], format: "iife" }),
]);

/** Digests of the sources and of what they gave: tests/test_build.py tells by them whether bundles are old. */
async function builtOf() {
  const own = fileURLToPath(root);
  const files = [join(own, "package-lock.json")];
  for (const part of ["contract", "src", "tools"]) {
    const entries = await readdir(join(own, part), { recursive: true, withFileTypes: true });
    for (const entry of entries) if (entry.isFile()) files.push(join(entry.parentPath, entry.name));
  }
  const named = files.map((file) => [relative(own, file).split(sep).join("/"), file]);
  named.sort(([one], [other]) => (one < other ? -1 : 1));
  const sources = createHash("sha256");
  for (const [name, file] of named) sources.update(`${name}\0`).update(await readFile(file));
  const bundles = {};
  for (const name of [...WITH_LICENCES, "frame.js"]) {
    bundles[name] = createHash("sha256")
      .update(await readFile(join(folder, name)))
      .digest("hex");
  }
  return { sources: sources.digest("hex"), bundles };
}

for (const context of contexts) {
  if (options.watch) {
    await context.watch();
  } else {
    await context.rebuild();
    await context.dispose();
  }
}
if (!options.watch) await writeFile(join(folder, "built.json"), JSON.stringify(await builtOf()));

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";

export default defineConfig({
  build: {
    // The policy of the page allows no `data:` but of images.
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 2000,
    modulePreload: { polyfill: false },
    target: "es2022",
    // A page has no other side.
    rollupOptions: { onwarn: (warning, warn) => warning.code === "MODULE_LEVEL_DIRECTIVE" || warn(warning) },
  },
  plugins: [licences(), compressed()],
});

/** The licences of the packages in the page, which is a file of it. */
function licences(): Plugin {
  return {
    name: "licences",
    generateBundle() {
      const folders = new Set<string>();
      for (const id of this.getModuleIds()) {
        const found = /^(?:\0)?(.*\/node_modules\/(?:@[^/]+\/)?[^/?]+)/.exec(id)?.[1];
        if (found && !found.includes("@tidegate")) folders.add(found);
      }
      const texts = [...folders].sort().map((folder) => {
        const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
        return `${name} ${version} (${license})\n\n${licenceOf(folder)}`;
      });
      this.emitFile({ type: "asset", name: "licences.txt", source: [...new Set(texts)].join("\n\n---\n\n") });
    },
  };
}

function licenceOf(folder: string): string {
  for (const name of ["LICENSE", "license", "LICENSE.md", "license.md", "LICENSE.txt"]) {
    try {
      return readFileSync(join(folder, name), "utf8").trim();
    } catch {
      continue;
    }
  }
  return "";
}

/** Assets as the program embeds them. */
function compressed(): Plugin {
  return {
    name: "compressed",
    enforce: "post",
    generateBundle: {
      order: "post",
      handler(_options, bundle) {
        for (const [name, file] of Object.entries(bundle)) {
          if (!name.startsWith("assets/")) continue;
          const content = file.type === "chunk" ? file.code : file.source;
          delete bundle[name];
          this.emitFile({ type: "asset", fileName: `${name}.gz`, source: gzipSync(content, { level: 9 }) });
        }
      },
    },
  };
}

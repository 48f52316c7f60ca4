import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin, type Rolldown } from "vite";

/** How the page and its workers are bundled. */
const bundle: Rolldown.InputOptions = {
	// How long plugins take is of no interest.
	checks: { pluginTimings: false },
	treeshake: {
		// The packages of the workspace do nothing when they are loaded, and some parts of them need Node.js.
		moduleSideEffects: (id) => !/\/packages\/[a-z-]+\/(?:src|dist)\//.test(id),
	},
	onLog: (level, log, handle) => {
		// A module that is left out in the end.
		if (!log.message.includes('Module "node:crypto" has been externalized')) {
			handle(level, log);
		}
	},
};

/** Lets the page run `early.ts` before its main script, as a script of its own: Vite makes one of all that a page names. */
const earlyScript: Plugin = {
	name: "early-script",
	transformIndexHtml: {
		order: "post",
		handler: (_html, { bundle = {} }) => {
			const early = Object.values(bundle).find((each) => each.name === "early");
			if (early?.type !== "chunk") {
				throw new Error("the bundle has no early script");
			}
			return [
				{ tag: "script", attrs: { type: "module", crossorigin: true, src: `./${early.fileName}` } },
				...early.imports.map((path) => ({
					tag: "link",
					attrs: { rel: "modulepreload", crossorigin: true, href: `./${path}` },
				})),
			].map((tag) => ({ ...tag, injectTo: "head-prepend" }));
		},
	},
};

/** Builds the page from `page` into `dist/page`. Its URLs are relative, so that it works below any path. */
export default defineConfig({
	root: "page",
	base: "./",
	plugins: [react(), earlyScript],
	worker: { format: "es", rolldownOptions: bundle },
	build: {
		outDir: "../dist/page",
		emptyOutDir: true,
		target: "es2023",
		// The content security policy allows no inline data.
		assetsInlineLimit: 0,
		modulePreload: { polyfill: false },
		// Of what the files contain.
		license: { fileName: "third-party.md" },
		rolldownOptions: { ...bundle, input: { index: "page/index.html", early: "page/early.ts" } },
	},
});

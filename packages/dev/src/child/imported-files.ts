import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { fileURLToPath } from "node:url";
import { contentHash } from "../files/content-hash.ts";
import type { ImportedFile } from "./messages.ts";

const installed = /[/\\]node_modules[/\\]/;

/**
 * Calls back with each file that this process imports or requires from now on, outside of `node_modules`, before it is
 * evaluated: also with those that can't be parsed.
 */
export function observeImports(onImported: (file: ImportedFile) => void): void {
	registerHooks({
		load(url, context, nextLoad) {
			const loaded = nextLoad(url, context);
			if (url.startsWith("file:") && !installed.test(url)) {
				const path = fileURLToPath(url);
				onImported({ path, hash: hashOf(path, loaded.source) });
			}
			return loaded;
		},
	});
}

function hashOf(path: string, source: unknown): string {
	return typeof source === "string" || source instanceof Uint8Array
		? contentHash(source)
		: contentHash(readFileSync(path));
}

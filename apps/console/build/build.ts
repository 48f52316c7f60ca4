/**
 * Builds the page into `dist/page`. It is built beside it, and replaces it when it is complete: a server that runs always
 * serves a whole page.
 *
 *     node build/build.ts
 */
import { renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { build } from "vite";
import { compressFiles } from "./compress-files.ts";

const root = join(import.meta.dirname, "..");
const folder = join(root, "dist/page");
const beside = join(root, `dist/page-${process.pid}`);
process.chdir(root);
try {
	await build({ logLevel: "warn", build: { outDir: beside } });
	compressFiles(beside);
	rmSync(folder, { recursive: true, force: true });
	renameSync(beside, folder);
} finally {
	rmSync(beside, { recursive: true, force: true });
}

import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

/** Writes compressed forms beside the files of a page, which the server sends to clients that accept them. */
export function compressFiles(folder: string): void {
	for (const path of globSync("**/*.{html,js,css,svg}", { cwd: folder })) {
		const content = readFileSync(join(folder, path));
		const brotli = brotliCompressSync(content, {
			params: {
				[constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
				[constants.BROTLI_PARAM_SIZE_HINT]: content.length,
			},
		});
		const gzip = gzipSync(content, { level: constants.Z_BEST_COMPRESSION });
		for (const [extension, compressed] of [
			["br", brotli],
			["gz", gzip],
		] as const) {
			if (compressed.length < content.length) {
				writeFileSync(join(folder, `${path}.${extension}`), compressed);
			}
		}
	}
}

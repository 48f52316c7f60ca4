import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Registry } from "./publish.ts";

const run = promisify(execFile);

/** The registry that npm is configured for. */
export function npmRegistry({ provenance }: { readonly provenance: boolean }): Registry {
	return {
		async has(name, version) {
			try {
				const { stdout } = await run("npm", ["view", `${name}@${version}`, "version"]);
				return stdout.trim() === version;
			} catch (error) {
				if (String(error).includes("E404")) {
					return false;
				}
				throw error;
			}
		},
		async publish(tarball) {
			const flags = ["--access", "public", ...(provenance ? ["--provenance"] : [])];
			await run("npm", ["publish", tarball, ...flags]);
		},
	};
}

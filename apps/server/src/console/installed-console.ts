import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** The package that contains the console. A server works without it. */
const consolePackage = "@plinth/console";

/** The console that is installed beside the server. */
export interface InstalledConsole {
	/** The folder of the built files. */
	readonly folder: string;
	/** The program that builds them, in a clone of the repository. */
	readonly buildProgram?: string;
}

/** The installed console; `undefined` if the package is not installed. */
export async function installedConsole(): Promise<InstalledConsole | undefined> {
	try {
		const { consoleFolder, consoleBuild } = (await import(
			consolePackage
		)) as typeof import("@plinth/console");
		const buildProgram = fileURLToPath(consoleBuild);
		return {
			folder: fileURLToPath(consoleFolder),
			...(existsSync(buildProgram) && { buildProgram }),
		};
	} catch (error) {
		if (error instanceof Error && "code" in error && error.code === "ERR_MODULE_NOT_FOUND") {
			return undefined;
		}
		throw error;
	}
}

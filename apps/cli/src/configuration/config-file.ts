import { chmodSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { usageFailure } from "../failure.ts";
import type { Configuration } from "./configuration.ts";

/** The path of the configuration file: `PLINTH_CONFIG`, or a file in the user's configuration folder. */
export function configFilePath(env: Readonly<Record<string, string | undefined>>): string {
	const folder = env.XDG_CONFIG_HOME || join(env.HOME || homedir(), ".config");
	return env.PLINTH_CONFIG || join(folder, "plinth", "config.yaml");
}

/**
 * Reads the file. A missing file is an empty configuration.
 *
 * @param warn - called if other users may read the tokens in the file.
 * @throws Failure if the file is malformed. The message never contains any of its content.
 */
export async function readConfiguration(
	file: string,
	warn: (message: string) => void,
): Promise<Configuration> {
	let text: string;
	try {
		text = readFileSync(file, "utf8");
	} catch (cause) {
		if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") {
			return { contexts: {} };
		}
		throw usageFailure(`can't read ${file}: ${String(cause)}`, { cause });
	}
	// Loads the YAML parser, which takes a while.
	const { parseConfiguration } = await import("./parse-configuration.ts");
	const configuration = parseConfiguration(file, text);
	const mode = statSync(file).mode & 0o777;
	const hasToken = Object.values(configuration.contexts).some(({ token }) => token !== undefined);
	if (hasToken && (mode & 0o077) !== 0) {
		warn(`other users may read the tokens in ${file}; run: chmod 600 ${file}`);
	}
	return configuration;
}

/** Replaces the file atomically. Only its owner can read it. */
export async function writeConfiguration(
	file: string,
	configuration: Configuration,
): Promise<void> {
	const { randomBytes } = await import("node:crypto");
	const { stringify } = await import("yaml");
	mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
	const temporary = `${file}.${randomBytes(6).toString("hex")}`;
	writeFileSync(temporary, stringify(configuration), { mode: 0o600, flag: "wx" });
	chmodSync(temporary, 0o600);
	renameSync(temporary, file);
}

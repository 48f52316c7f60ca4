import { chmodSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { usageFailure } from "../failure.ts";
import { readFailure } from "../read-failure.ts";
import type { Configuration } from "./configuration.ts";

/** The path of the configuration file: `PLINTH_CONFIG`, or a file in the user's configuration folder. */
export function configFilePath(env: Readonly<Record<string, string | undefined>>): string {
	const folder = env.XDG_CONFIG_HOME || join(env.HOME || homedir(), ".config");
	return env.PLINTH_CONFIG || join(folder, "plinth", "config.yaml");
}

/**
 * Reads the file. A missing file is an empty configuration, unless it is named.
 *
 * @param warn - called if other users may read the tokens in the file.
 * @param namedBy - the flag or the variable that names the file, if it has to exist.
 * @throws Failure if the file is malformed. The message never contains any of its content.
 */
export async function readConfiguration(
	file: string,
	warn: (message: string) => void,
	namedBy?: string,
): Promise<Configuration> {
	let text: string;
	try {
		text = readFileSync(file, "utf8");
	} catch (cause) {
		const isMissing = cause instanceof Error && "code" in cause && cause.code === "ENOENT";
		if (isMissing && namedBy === undefined) {
			return { contexts: {} };
		}
		const advice = isMissing ? " (plinth context set creates it)" : "";
		const named = namedBy === undefined ? "" : `${namedBy}: `;
		throw usageFailure(`${named}can't read ${file}: ${readFailure(cause)}${advice}`, { cause });
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

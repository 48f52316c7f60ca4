import { FileError, parseCommandLine, UsageError } from "@plinth/server/command";
import { type DevContext, DevError, type DevFlags } from "./dev-options.ts";

/** The server of a project. */
export interface ProjectServer {
	/** All flags of `plinth-server`. */
	readonly flags: readonly string[];
	readonly listen: { readonly host: string; readonly port: number };
	/** Where its data is, for people. */
	readonly storage: string;
	/** `http` or `https`. */
	readonly scheme: string;
	/** How long running calls may continue when it stops. */
	readonly stopLimitMs: number;
}

/** Where `plinth dev` keeps the data unless it is told otherwise. */
const defaultDataDirectory = ".plinth/data";

/** A developer waits for the next server. */
const defaultStopLimitMs = 1_000;

/**
 * The flags of the server that `plinth dev` runs. They are read like those of `plinth-server`, so that the same rules
 * apply to its address.
 *
 * @throws DevError.
 */
export function projectServer(flags: DevFlags, context: DevContext): ProjectServer {
	const { serverFlags, environment } = context;
	const isSet = (flag: string, variable: string) =>
		serverFlags.some((each) => each === flag || each.startsWith(`${flag}=`)) ||
		Boolean(environment[variable]);
	const dataDirectory = isSet("--data-dir", "PLINTH_DATA_DIR") ? undefined : defaultDataDirectory;
	const all = [
		...["--module", flags.module],
		...flagOf("--listen", flags.listen),
		...flagOf("--data-dir", flags.dataDir ?? dataDirectory),
		...serverFlags,
	];
	try {
		const command = parseCommandLine(all, environment);
		if (command.kind === "help") {
			throw new DevError("the flags of plinth-server are listed by npx plinth-server --help");
		}
		const { listen, storage, dataDirectory: directory, tls, stopLimitMs } = command.configuration;
		return {
			flags:
				stopLimitMs === undefined
					? [...all, "--limits-stop-timeout", `${defaultStopLimitMs}ms`]
					: all,
			stopLimitMs: stopLimitMs ?? defaultStopLimitMs,
			listen,
			storage: storage === "sqlite" ? directory : storage,
			scheme: tls === undefined ? "http" : "https",
		};
	} catch (failure) {
		if (failure instanceof UsageError || failure instanceof FileError) {
			throw new DevError(failure.message, { cause: failure });
		}
		throw failure;
	}
}

function flagOf(flag: string, value: string | undefined): readonly string[] {
	return value === undefined ? [] : [flag, value];
}

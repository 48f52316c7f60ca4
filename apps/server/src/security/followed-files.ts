import { readFile } from "node:fs/promises";
import type { Clock, Logger, Timer } from "@plinth/runtime";
import { FileError, unreadable } from "../configuration/located-yaml.ts";

/** Files that are read again when they change. */
export interface FollowedFiles {
	/** Reads the files now. Resolves when changed contents have been applied or refused. */
	check(): Promise<void>;
	close(): void;
}

/** Options of `followFiles`. */
export interface FollowOptions<Names extends string> {
	/** Paths by purpose. */
	readonly files: Readonly<Record<Names, string>>;
	/** How often to check the files, in milliseconds; 2 s by default. */
	readonly pollIntervalMs?: number;
	readonly clock: Clock;
	readonly logger: Logger;
	/**
	 * Applies the contents, first at the start and then after each change. If it throws at the start, `followFiles`
	 * rejects; later the error is logged, the previous contents stay in effect, and the next change is tried.
	 */
	readonly apply: (contents: Readonly<Record<Names, string>>) => void;
	/**
	 * Called after each check but that at the start, with what is wrong with the files as they are now; empty if they are in
	 * effect.
	 */
	readonly onChecked?: (problem: string) => void;
}

const defaultEveryMs = 2_000;

/**
 * Reads files, and reads them again when they change. It compares contents, because file notifications do not cover
 * all ways to replace a file, such as the symbolic links that Kubernetes changes.
 *
 * @throws FileError if a file can't be read; the error of `apply` if its content is refused.
 */
export async function followFiles<Names extends string>(
	options: FollowOptions<Names>,
): Promise<FollowedFiles> {
	const { files, clock, logger, apply, pollIntervalMs = defaultEveryMs, onChecked } = options;
	const names = Object.keys(files).filter((name): name is Names => Object.hasOwn(files, name));
	let last = "";
	/** Why `last` was refused; `undefined` if it is in effect. */
	let refusal: { readonly reason: unknown } | undefined;
	let problem = "";
	let closed = false;
	let timer: Timer | undefined;
	let checking: Promise<void> | undefined;

	const read = async () => {
		const entries = await Promise.all(
			names.map(async (name) => [name, await textOf(files[name])] as const),
		);
		const seen = JSON.stringify(entries);
		if (seen !== last) {
			last = seen;
			refusal = undefined;
			try {
				// Each name has its content: they are the entries of `names`.
				apply(Object.fromEntries(entries) as Record<Names, string>);
			} catch (reason) {
				refusal = { reason };
			}
		}
		if (refusal !== undefined) {
			throw refusal.reason;
		}
	};
	const checkAgain = async () => {
		const before = last;
		try {
			await read();
			if (last !== before) {
				logger.info({ files: Object.values(files) }, "reloaded changed files");
			} else if (problem !== "") {
				logger.info({ files: Object.values(files) }, "the files are there again, and unchanged");
			}
			problem = "";
		} catch (failure) {
			const message = failure instanceof Error ? failure.message : String(failure);
			// Logged once per problem, which may persist.
			if (message !== problem) {
				problem = message;
				logger.error(
					{ problem: message },
					"a changed file was refused: the previous contents stay in effect",
				);
			}
		}
		onChecked?.(problem);
	};
	const check = () => {
		checking ??= checkAgain().finally(() => {
			checking = undefined;
		});
		return checking;
	};
	const arm = () => {
		if (!closed) {
			// Errors are logged, and do not end the checks.
			timer = clock.setTimer(pollIntervalMs, () => void check().then(arm));
		}
	};

	await read();
	arm();
	return {
		check,
		close() {
			closed = true;
			timer?.cancel();
		},
	};
}

/** @throws FileError that names the file. */
async function textOf(file: string): Promise<string> {
	try {
		return await readFile(file, "utf8");
	} catch (cause) {
		throw new FileError(`${file}: ${unreadable(cause)}`, { cause });
	}
}

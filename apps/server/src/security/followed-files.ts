import { readFile } from "node:fs/promises";
import type { Clock, Logger, Timer } from "@plinth/runtime";

/** Files that are read again when they change. */
export interface FollowedFiles {
	/** Reads them now. Resolves when what is new has been taken, or refused. */
	check(): Promise<void>;
	close(): void;
}

/** What files are followed with. */
export interface FollowOptions<Names extends string> {
	/** Paths by what they are for. */
	readonly files: Readonly<Record<Names, string>>;
	/** How often to look, in milliseconds; 2 s where it is absent. */
	readonly everyMs?: number;
	readonly clock: Clock;
	readonly logger: Logger;
	/**
	 * Takes the contents: at first, and whenever one is another. What it throws the first time stops
	 * the start; later it is logged, what was taken before holds, and it is tried again when a file changes.
	 */
	readonly take: (contents: Readonly<Record<Names, string>>) => void;
}

const defaultEveryMs = 2_000;

/**
 * Reads files, and again when they change. It compares contents, for files are replaced in ways that no
 * notification covers alike: renamed over, or behind symbolic links as Kubernetes does.
 *
 * @throws Error where a file can't be read, or is refused.
 */
export async function followFiles<Names extends string>(
	options: FollowOptions<Names>,
): Promise<FollowedFiles> {
	const { files, clock, logger, take, everyMs = defaultEveryMs } = options;
	const names = Object.keys(files).filter((name): name is Names => Object.hasOwn(files, name));
	let last = "";
	let problem = "";
	let closed = false;
	let timer: Timer | undefined;
	let checking: Promise<void> | undefined;

	const read = async () => {
		const entries = await Promise.all(
			names.map(async (name) => [name, await readFile(files[name], "utf8")] as const),
		);
		const seen = JSON.stringify(entries);
		if (seen === last) {
			return;
		}
		last = seen;
		// Each name has its content: they are the entries of `names`.
		take(Object.fromEntries(entries) as Record<Names, string>);
		problem = "";
	};
	const checkAgain = async () => {
		const before = last;
		try {
			await read();
			if (last !== before) {
				logger.info({ files: Object.values(files) }, "read again, because it changed");
			}
		} catch (failure) {
			const message = failure instanceof Error ? failure.message : String(failure);
			// Once per problem: it stays until somebody puts it right.
			if (message !== problem) {
				problem = message;
				logger.error(
					{ problem: message },
					"a file that changed is not taken; what was before holds",
				);
			}
		}
	};
	const check = () => {
		checking ??= checkAgain().finally(() => {
			checking = undefined;
		});
		return checking;
	};
	const arm = () => {
		if (!closed) {
			// What goes wrong is logged, and the next look comes all the same.
			timer = clock.setTimer(everyMs, () => void check().then(arm));
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

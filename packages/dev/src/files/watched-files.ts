import { basename, extname, sep } from "node:path";
import type { Clock, Timer } from "@plinth/runtime";
import { type FSWatcher, watch } from "chokidar";
import type { ImportedFile } from "../child/messages.ts";
import { isSkippedFolder, KnownFiles } from "./known-files.ts";

/** Files that have changed, with what follows. */
export interface Change {
	/** Paths of files that are used: absolute, sorted. Empty if only types can be affected. */
	readonly files: readonly string[];
	/** Whether code has to be generated. */
	readonly generate: boolean;
	/** When the first of them changed, by `performance.now`. */
	readonly sinceMs: number;
}

/** Options of `WatchedFiles`. */
export interface WatchedFilesOptions {
	readonly clock: Clock;
	/** The folder with the code, absolute. New files in it are changes. */
	readonly codeFolder: string;
	/** Files and folders that generated code depends on, absolute. */
	readonly generatorInputs: readonly string[];
	readonly onChange: (change: Change) => void;
}

/** Editors and tools write several files at once: a change is over when nothing has happened for this long. */
const quietMs = 30;

/** A change is reported after this time, even if files continue to change. */
const longestMs = 500;

const codeExtensions: ReadonlySet<string> = new Set([
	...[".ts", ".mts", ".cts", ".js", ".mjs", ".cjs", ".json"],
]);

const testFile = /\.(?:test|spec)\.[cm]?[jt]s$/;

/**
 * Watches what the server is made of: the files that a child has imported, new code in the project, and what code is
 * generated from. Files with the same content as before are no change.
 */
export class WatchedFiles {
	readonly #options: WatchedFilesOptions;
	readonly #watcher: FSWatcher;
	readonly #known = new KnownFiles();
	readonly #imported = new Set<string>();
	readonly #changed = new Set<string>();
	#sinceMs = 0;
	#timer: Timer | undefined;

	constructor(options: WatchedFilesOptions) {
		this.#options = options;
		this.#watcher = watch([options.codeFolder, ...options.generatorInputs], {
			ignoreInitial: true,
			ignored: (path) => isSkippedFolder(basename(path)),
		});
		this.#watcher.on("all", (_event, path) => this.#look(path));
		// A file that can't be watched, such as for too many watches, is not the end.
		this.#watcher.on("error", () => {});
	}

	/** Resolves when changes are noticed. */
	ready(): Promise<void> {
		return new Promise((resolve) => this.#watcher.once("ready", resolve));
	}

	/** A child has imported these files. */
	imported(files: readonly ImportedFile[]): void {
		const { codeFolder } = this.#options;
		for (const { path, hash } of files) {
			if (!this.#imported.has(path)) {
				this.#imported.add(path);
				if (!isWithin(path, codeFolder)) {
					this.#watcher.add(path);
				}
			}
			if (this.#known.use(path, hash)) {
				this.#add(path);
			}
		}
	}

	/** A child is started: it uses what code contains now, and only later changes are reported. */
	useCode(): void {
		this.#known.lookAtAll([this.#options.codeFolder, ...this.#imported]);
		this.#forget((path) => !this.#isInput(path));
	}

	/** Code is generated from what the inputs contain now. */
	useInputs(): void {
		this.#known.lookAtAll(this.#options.generatorInputs);
		this.#forget((path) => this.#isInput(path));
	}

	/** Changes that are about to be reported are in use already. */
	#forget(isUsed: (path: string) => boolean): void {
		for (const path of this.#changed) {
			if (isUsed(path)) {
				this.#changed.delete(path);
			}
		}
		if (this.#changed.size === 0) {
			this.#timer?.cancel();
			this.#timer = undefined;
		}
	}

	async close(): Promise<void> {
		this.#timer?.cancel();
		await this.#watcher.close();
	}

	#look(path: string): void {
		const isInput = this.#isInput(path);
		const isCode = codeExtensions.has(extname(path)) && isWithin(path, this.#options.codeFolder);
		if (!isInput && !isCode && !this.#imported.has(path)) {
			return;
		}
		const isNew = !this.#known.has(path);
		if (!this.#known.look(path)) {
			return;
		}
		if (isInput || this.#imported.has(path) || (isNew && !testFile.test(path))) {
			this.#add(path);
		} else {
			this.#wait();
		}
	}

	#isInput(path: string): boolean {
		return this.#options.generatorInputs.some(
			(input) => path === input || (isWithin(path, input) && path.endsWith(".proto")),
		);
	}

	#add(path: string): void {
		this.#changed.add(path);
		this.#wait();
	}

	#wait(): void {
		const nowMs = performance.now();
		if (this.#timer === undefined) {
			this.#sinceMs = nowMs;
		}
		this.#timer?.cancel();
		const leftMs = this.#sinceMs + longestMs - nowMs;
		this.#timer = this.#options.clock.setTimer(Math.min(quietMs, leftMs), () => this.#report());
	}

	#report(): void {
		this.#timer = undefined;
		const files = [...this.#changed].sort();
		this.#changed.clear();
		const generate = files.some((path) => this.#isInput(path));
		this.#options.onChange({ files, generate, sinceMs: this.#sinceMs });
	}
}

function isWithin(path: string, folder: string): boolean {
	return path.startsWith(folder + sep);
}

import { type ChildOptions, type RunningChild, startChild } from "./child-process.ts";
import type { ImportedFile } from "./messages.ts";

/** What is the same for all children of a project. */
export interface ChildrenOptions
	extends Pick<ChildOptions, "flags" | "folder" | "environment" | "onLine"> {
	/** Called with files that a child has imported. */
	readonly onImported: (files: readonly ImportedFile[]) => void;
}

/** What a supervisor learns of one child. */
export type ChildEvents = Pick<ChildOptions, "onMessage" | "onExited">;

/** A child that has loaded the code of the server, and waits. */
interface Standby {
	readonly child: RunningChild;
	/** Files outside of `node_modules`: none, unless the packages of Plinth are links. */
	readonly imported: Set<string>;
	readonly exited: Promise<void>;
	events: ChildEvents | undefined;
}

/**
 * Starts children. One is kept on standby with the code of the server, which takes most of the time of a start and does
 * not change.
 */
export class Children {
	readonly #options: ChildrenOptions;
	#standby: Standby | undefined;

	constructor(options: ChildrenOptions) {
		this.#options = options;
	}

	/** A child that imports the module now. */
	take(events: ChildEvents): RunningChild {
		const standby = this.#standby ?? this.#start();
		this.#standby = undefined;
		standby.events = events;
		standby.child.tell("load");
		return standby.child;
	}

	/** Puts a child on standby. */
	prepare(): void {
		this.#standby ??= this.#start();
	}

	/** These files have changed: a child that has imported one of them is outdated. */
	changed(files: readonly string[]): void {
		const standby = this.#standby;
		if (standby !== undefined && files.some((file) => standby.imported.has(file))) {
			this.#standby = undefined;
			standby.child.kill();
		}
	}

	/** Kills the child on standby at once. */
	kill(): void {
		this.#standby?.child.kill();
	}

	/** Ends the child on standby. */
	async close(): Promise<void> {
		const standby = this.#standby;
		this.#standby = undefined;
		standby?.child.kill();
		await standby?.exited;
	}

	#start(): Standby {
		const { onImported, ...options } = this.#options;
		const exited = Promise.withResolvers<void>();
		const imported = new Set<string>();
		const child = startChild({
			...options,
			onMessage: (message) => {
				if (standby.events !== undefined) {
					standby.events.onMessage(message);
				} else if (message.kind === "imported") {
					for (const { path } of message.files) {
						imported.add(path);
					}
					onImported(message.files);
				}
			},
			onExited: (...exit) => {
				if (this.#standby === standby) {
					this.#standby = undefined;
				}
				exited.resolve();
				standby.events?.onExited(...exit);
			},
		});
		const standby: Standby = { child, imported, exited: exited.promise, events: undefined };
		return standby;
	}
}

import type { Resource, WatchEvent } from "@plinth/proto";
import { keyOf } from "../cluster/shared-storage.ts";
import { type Change, type History, noteOf } from "./history.ts";

/** A change that a watch must send, and whether it is the last one of its revision. */
interface Expected {
	readonly revision: number;
	readonly isLast: boolean;
	/** `undefined` if the storage was restored: no event may follow. */
	readonly change: Change | undefined;
}

/** Options of `WatchCheck`. */
export interface WatchCheckOptions {
	readonly history: History;
	/** Whether the watch shows a resource. */
	readonly sees: (resource: Resource) => boolean;
	/** The version that the watch resumes after; empty if it begins with a snapshot. */
	readonly afterVersion: string;
	/** What its agent has shown before: a snapshot must not be older. */
	readonly notBefore: () => number;
	readonly onViolation: (text: string) => void;
}

/**
 * Checks what a client receives of one watch against the history: a snapshot that is the state at its version, then each
 * change after it, once, in the order of commits, with the version on the last change of each revision.
 */
export class WatchCheck {
	readonly #options: WatchCheckOptions;
	/** What the snapshot has shown so far; `undefined` once it is complete. */
	#snapshot: Map<string, Resource> | undefined;
	/** The position in the history up to which changes are in `#expected`. */
	#index: number;
	readonly #expected: Expected[] = [];
	#version: string;

	constructor(options: WatchCheckOptions) {
		this.#options = options;
		this.#version = options.afterVersion;
		this.#snapshot = options.afterVersion === "" ? new Map() : undefined;
		this.#index = options.history.indexAt(Number(options.afterVersion));
	}

	/** The version to resume after; empty if there is none. */
	get version(): string {
		return this.#version;
	}

	/** Whether all changes so far have been received. */
	get isCurrent(): boolean {
		this.#expectMore();
		return this.#snapshot === undefined && this.#expected.length === 0;
	}

	/** The next event. */
	add({ event, version }: WatchEvent): void {
		switch (event.case) {
			case "upsert":
			case "delete":
				if (event.value.resource === undefined) {
					this.#violation(`${event.case} without a resource`);
				} else if (this.#snapshot === undefined) {
					this.#changed(event.case, event.value.resource, version);
				} else {
					this.#shown(this.#snapshot, event.value.resource);
				}
				break;
			case "endOfSnapshot":
				this.#snapshotEnded(version);
				break;
			default:
				this.#bookmark(version);
		}
	}

	#shown(snapshot: Map<string, Resource>, resource: Resource): void {
		const key = keyOf(resource);
		if (snapshot.has(key)) {
			this.#violation(`${key} is twice in a snapshot`);
		}
		snapshot.set(key, resource);
	}

	#snapshotEnded(version: string): void {
		const { history, sees, notBefore } = this.#options;
		const shown = this.#snapshot;
		this.#snapshot = undefined;
		if (shown === undefined) {
			this.#violation("the end of a snapshot after changes");
			return;
		}
		if (Number(version) < notBefore()) {
			this.#violation(`a snapshot at ${version}, after ${notBefore()} was shown`);
		}
		this.#index = history.indexAt(Number(version));
		const stored = history.entries[this.#index]?.goods ?? new Map<string, Resource>();
		const wanted = [...stored.values()].filter(sees).map(textOf).sort().join(", ");
		const found = [...shown.values()].map(textOf).sort().join(", ");
		if (wanted !== found) {
			this.#violation(`the snapshot at ${version} has ${found} instead of ${wanted}`);
		}
		this.#version = version;
	}

	#changed(kind: Change["kind"], resource: Resource, version: string): void {
		this.#expectMore();
		const next = this.#expected.shift();
		const found = `${kind} of ${textOf(resource)}`;
		const wanted = next?.change && `${next.change.kind} of ${textOf(next.change.resource)}`;
		if (next === undefined || found !== wanted) {
			this.#violation(`${found} instead of ${wanted ?? "nothing"}, after ${this.#version}`);
			return;
		}
		const due = next.isLast ? String(next.revision) : "";
		if (version !== due) {
			this.#violation(`${found} with version "${version}" instead of "${due}"`);
		}
		if (version !== "") {
			this.#version = version;
		}
	}

	#bookmark(version: string): void {
		this.#expectMore();
		const [next] = this.#expected;
		if (this.#snapshot !== undefined || Number(version) < Number(this.#version)) {
			this.#violation(`a bookmark at ${version} after ${this.#version}`);
		}
		if (next !== undefined && next.revision <= Number(version)) {
			this.#violation(`a bookmark at ${version}, before a change of ${next.revision}`);
		}
		this.#version = version;
	}

	/** Looks at what was committed since. */
	#expectMore(): void {
		if (this.#snapshot !== undefined) {
			return;
		}
		const { history, sees } = this.#options;
		for (const { revision, changes } of history.entries.slice(this.#index + 1)) {
			this.#index += 1;
			if (changes === undefined) {
				this.#expected.push({ revision, isLast: true, change: undefined });
				continue;
			}
			const seen = changes.filter(({ resource }) => sees(resource));
			for (const [at, change] of seen.entries()) {
				this.#expected.push({ revision, change, isLast: at === seen.length - 1 });
			}
		}
	}

	#violation(text: string): void {
		this.#options.onViolation(text);
	}
}

/** A resource, as far as it is compared. */
function textOf(resource: Resource): string {
	return `${keyOf(resource)}@${resource.version} (${noteOf(resource)})`;
}

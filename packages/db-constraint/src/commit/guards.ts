import type { Runtime } from "@plinth/runtime";
import {
	CasFailure,
	type Consistency,
	type Mutation,
	type ReadOptions,
	type StorageBackend,
} from "@plinth/storage";
import { hashOf, type KeyLike, keyString } from "../shadow/resource-key.ts";
import { putRecord, readRecord, recordId } from "../shadow/shadow-records.ts";

/** The number of guards. It must never change: all servers must assign a target to the same guard. */
const guardCount = 256;

/** How many guards one commit changes, if all are changed: a storage that fails some commits would never change all, one by one. */
const batchSize = 64;

/** The counter of a guard wraps here: a guard never grows, so it can be changed when the storage is full. */
const mostChanges = 100n;

/** The name of the guard of a target. */
export function guardName(target: KeyLike): string {
	const at = Number.parseInt(hashOf(keyString(target)).slice(0, 8), 16) % guardCount;
	return `guard-${at}`;
}

/**
 * Makes the "no" of a deployment final.
 *
 *     writer:   read guard ── establish at the target ── commit, asserting the guard
 *     queried:  check index ── change guard ── check index again ── "no"
 *
 * A writer that read the guard before the change fails its commit. A writer that read it afterwards
 * establishes its reference after the query was sent, and thereby renews the source that a "no" would drop.
 */
export class Guards {
	readonly #backend: StorageBackend;
	readonly #runtime: Runtime;
	/** Changes that have not started. Further calls share them. */
	readonly #waiting = new Map<string, Promise<string>>();
	readonly #running = new Map<string, Promise<unknown>>();

	constructor(backend: StorageBackend, runtime: Runtime) {
		this.#backend = backend;
		this.#runtime = runtime;
	}

	/**
	 * The asserts that fail a commit if one of the guards changes from now on, in the order of the targets. A missing guard
	 * is created by the commit, so that it exists before the deployment is queried.
	 */
	async asserts(
		targets: Iterable<KeyLike>,
		options: ReadOptions = {},
	): Promise<readonly Mutation[]> {
		const names = new Set([...targets].map(guardName));
		return Promise.all(
			[...names].map(async (name): Promise<Mutation> => {
				const stored = await readRecord(this.#backend, name, options);
				if (stored === undefined) {
					return putRecord(this.#runtime, name, undefined, { case: "guard", value: {} });
				}
				return { op: "assert", id: recordId(name), expectedVersion: stored.resource.version };
			}),
		);
	}

	/**
	 * Changes the guard of a target, and returns the version of that commit. Calls during a change share the
	 * next one: the change in progress may precede their query.
	 */
	change(target: KeyLike): Promise<string> {
		return this.#change(guardName(target));
	}

	/** Changes all guards: every write that has read one of them before fails. */
	async changeAll(): Promise<void> {
		const names = Array.from({ length: guardCount }, (_, at) => `guard-${at}`);
		for (let at = 0; at < guardCount; at += batchSize) {
			await this.#put(names.slice(at, at + batchSize));
		}
	}

	#change(name: string): Promise<string> {
		const waiting = this.#waiting.get(name);
		if (waiting !== undefined) {
			return waiting;
		}
		const before = this.#running.get(name) ?? Promise.resolve();
		const change = before
			.catch(() => {})
			.then(() => {
				this.#waiting.delete(name);
				this.#running.set(name, change);
				return this.#put([name]);
			})
			.finally(() => {
				if (this.#running.get(name) === change) {
					this.#running.delete(name);
				}
			});
		this.#waiting.set(name, change);
		return change;
	}

	/** Changes guards in one commit, and returns its version. */
	async #put(names: readonly string[]): Promise<string> {
		for (let consistency: Consistency = "eventual"; ; consistency = "strong") {
			const mutations = await Promise.all(
				names.map(async (name): Promise<Mutation> => {
					const stored = await readRecord(this.#backend, name, { consistency });
					const changes = stored?.record.case === "guard" ? stored.record.value.changes : 0n;
					return putRecord(this.#runtime, name, stored?.resource, {
						case: "guard",
						value: { changes: (changes % mostChanges) + 1n },
					});
				}),
			);
			try {
				const { version } = await this.#backend.commit(mutations);
				return version;
			} catch (failure) {
				// Another server has changed one of them, possibly before the query.
				if (!(failure instanceof CasFailure)) {
					throw failure;
				}
			}
		}
	}
}

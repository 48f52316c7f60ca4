import type { Runtime } from "@plinth/runtime";
import { CasFailure, type Consistency, type Mutation, type StorageBackend } from "@plinth/storage";
import { hashOf, type KeyLike, keyString } from "./resource-key.ts";
import { putRecord, readRecord, recordId } from "./shadow-records.ts";

/** How many guards there are. It must never change: all servers must agree on whose guard is which. */
const guardCount = 256;

/** The count begins anew here: so a guard never grows, and changes in a storage without room too. */
const mostChanges = 100n;

/** The name of the guard of a target. */
export function guardName(target: KeyLike): string {
	const at = Number.parseInt(hashOf(keyString(target)).slice(0, 8), 16) % guardCount;
	return `guard-${at}`;
}

/**
 * What makes a deployment's "no" final.
 *
 *     writer:  read guard ── establish at the target ── commit, asserting the guard
 *     asked:   look ── change guard ── look again ── "no"
 *
 * A writer that read the guard before the change fails its commit; one that read it after
 * establishes after the question was asked, and so renews what the answer would drop.
 */
export class Guards {
	readonly #backend: StorageBackend;
	readonly #runtime: Runtime;
	/** Changes that have not begun: whoever asks meanwhile shares them. */
	readonly #waiting = new Map<string, Promise<string>>();
	readonly #running = new Map<string, Promise<unknown>>();

	constructor(backend: StorageBackend, runtime: Runtime) {
		this.#backend = backend;
		this.#runtime = runtime;
	}

	/**
	 * The asserts by which a commit fails if one of the guards changes from now on. A guard that is not there
	 * yet is made by the commit, so that it is there by the time that somebody asks.
	 */
	async asserts(targets: Iterable<KeyLike>): Promise<readonly Mutation[]> {
		const names = new Set([...targets].map(guardName));
		return Promise.all(
			[...names].map(async (name): Promise<Mutation> => {
				const stored = await readRecord(this.#backend, name);
				if (stored === undefined) {
					return putRecord(this.#runtime, name, undefined, { case: "guard", value: {} });
				}
				return { op: "assert", id: recordId(name), expectedVersion: stored.resource.version };
			}),
		);
	}

	/**
	 * Changes the guard of a target, and answers the version of that commit. Those who ask while a
	 * change is under way share the next one: the one under way may have been decided before they asked.
	 */
	change(target: KeyLike): Promise<string> {
		return this.#change(guardName(target));
	}

	/** Changes all guards: every write that has read one of them before fails, whatever it references. */
	async changeAll(): Promise<void> {
		for (let at = 0; at < guardCount; at++) {
			await this.#change(`guard-${at}`);
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
				return this.#put(name);
			})
			.finally(() => {
				if (this.#running.get(name) === change) {
					this.#running.delete(name);
				}
			});
		this.#waiting.set(name, change);
		return change;
	}

	async #put(name: string): Promise<string> {
		for (let consistency: Consistency = "eventual"; ; consistency = "strong") {
			const stored = await readRecord(this.#backend, name, { consistency });
			const changes = stored?.record.case === "guard" ? stored.record.value.changes : 0n;
			try {
				const { version } = await this.#backend.commit([
					putRecord(this.#runtime, name, stored?.resource, {
						case: "guard",
						value: { changes: (changes % mostChanges) + 1n },
					}),
				]);
				return version;
			} catch (failure) {
				// Another server has changed it: that may have been before the question.
				if (!(failure instanceof CasFailure)) {
					throw failure;
				}
			}
		}
	}
}

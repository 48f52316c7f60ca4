import { equals } from "@bufbuild/protobuf";
import {
	type ResourceKey,
	type Shadow,
	ShadowSchema,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import type { Runtime } from "@plinth/runtime";
import type { Mutation, StorageBackend } from "@plinth/storage";
import type { KeyLike } from "./resource-key.ts";
import { isEmpty, shadowName } from "./shadow.ts";
import { putRecord, readShadow, recordId, type StoredShadow } from "./shadow-records.ts";

/** A shadow that a commit reads, and what becomes of it. */
export interface ShadowEdit {
	readonly name: string;
	/** As it is stored. */
	readonly stored: StoredShadow | undefined;
	/** As the commit leaves it. */
	next: Shadow | undefined;
	/** Whether the commit depends on it even where it does not change it. */
	asserted: boolean;
}

/**
 * What a commit of resources does besides: one mutation for each shadow that it writes or depends
 * on, however many of its resources have to do with it, and asserts of all else that it has read.
 */
export class CommitPlan {
	readonly #backend: StorageBackend;
	readonly #runtime: Runtime;
	readonly #edits = new Map<string, ShadowEdit>();
	readonly #asserts = new Map<string, Mutation>();

	constructor(backend: StorageBackend, runtime: Runtime) {
		this.#backend = backend;
		this.#runtime = runtime;
	}

	/** The shadow of a resource of this deployment. */
	async shadow(key: KeyLike): Promise<ShadowEdit> {
		const name = shadowName(key);
		const known = this.#edits.get(name);
		if (known !== undefined) {
			return known;
		}
		const stored = await readShadow(this.#backend, name);
		// Somebody may have asked for the same one meanwhile.
		const edit = this.#edits.get(name) ?? { name, stored, next: stored?.shadow, asserted: false };
		this.#edits.set(name, edit);
		return edit;
	}

	/** Puts a shadow that is known already, in place of reading it. */
	preset(stored: StoredShadow): ShadowEdit {
		const edit = { name: stored.name, stored, next: stored.shadow, asserted: true };
		this.#edits.set(stored.name, edit);
		return edit;
	}

	/** Adds an assert, once for each key. */
	assert(key: string, mutation: Mutation): void {
		this.#asserts.set(key, mutation);
	}

	/** Everything that goes into the commit beside the resources. */
	mutations(): readonly Mutation[] {
		const mutations = [...this.#asserts.values()];
		for (const { name, stored, next, asserted } of this.#edits.values()) {
			const kept = next !== undefined && !isEmpty(next) ? next : undefined;
			const isSame = kept && stored && equals(ShadowSchema, kept, stored.shadow);
			if (kept !== undefined && !isSame) {
				mutations.push(
					putRecord(this.#runtime, name, stored?.resource, { case: "shadow", value: kept }),
				);
			} else if (kept === undefined && stored !== undefined) {
				mutations.push({
					op: "delete",
					id: recordIdOf(stored),
					expectedVersion: stored.version,
				});
			} else if (asserted) {
				mutations.push({
					op: "assert",
					id: recordId(name),
					expectedVersion: stored?.version ?? "",
				});
			}
		}
		return mutations;
	}
}

function recordIdOf(stored: StoredShadow) {
	return { ...recordId(stored.name), uid: stored.resource.id?.uid ?? "" };
}

/** The key of a shadow's resource. @throws Error where it has none: a fault of this package. */
export function keyOfShadow(shadow: Shadow): ResourceKey {
	if (shadow.resource === undefined) {
		throw new Error("a resource shadow names no resource");
	}
	return shadow.resource;
}

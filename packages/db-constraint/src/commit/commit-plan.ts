import { equals } from "@bufbuild/protobuf";
import {
	type ResourceKey,
	type Shadow,
	ShadowSchema,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import type { Runtime } from "@plinth/runtime";
import type { Mutation, StorageBackend } from "@plinth/storage";
import type { KeyLike } from "../shadow/resource-key.ts";
import { isEmpty, shadowName } from "../shadow/shadow.ts";
import { putRecord, readShadow, recordId, type StoredShadow } from "../shadow/shadow-records.ts";

/** A shadow that a commit reads and may change. */
export interface ShadowEdit {
	readonly name: string;
	/** The stored shadow. */
	readonly stored: StoredShadow | undefined;
	/** The shadow after the commit. */
	next: Shadow | undefined;
	/** Whether the commit depends on it even if it does not change it. */
	asserted: boolean;
}

/**
 * The additional mutations of a commit of resources: one per shadow that the commit writes or depends on,
 * however many of its resources use that shadow, and asserts of everything else that it has read.
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
		// A concurrent call may have added the same one.
		const edit = this.#edits.get(name) ?? { name, stored, next: stored?.shadow, asserted: false };
		this.#edits.set(name, edit);
		return edit;
	}

	/** Sets a shadow that is known already, instead of reading it. */
	preset(stored: StoredShadow): ShadowEdit {
		const edit = { name: stored.name, stored, next: stored.shadow, asserted: true };
		this.#edits.set(stored.name, edit);
		return edit;
	}

	/** Adds an assert, once per key. */
	assert(key: string, mutation: Mutation): void {
		this.#asserts.set(key, mutation);
	}

	/** At least as many as there are mutations. */
	get mostMutations(): number {
		return this.#asserts.size + this.#edits.size;
	}

	/** All mutations of the commit other than those of the resources. */
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

/** The key of a shadow's resource. @throws Error if it has none, which is a bug of this package. */
export function keyOfShadow(shadow: Shadow): ResourceKey {
	if (shadow.resource === undefined) {
		throw new Error("a resource shadow names no resource");
	}
	return shadow.resource;
}

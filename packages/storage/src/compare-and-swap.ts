import type { ID, Resource } from "@plinth/proto";
import { displayName, freezeInDevelopment, nameKey, type ResourceName } from "@plinth/resource";
import { CasFailure, WrongUid } from "./errors.ts";
import type { CommitResult, Mutation } from "./mutation.ts";
import { requireNamed } from "./state-store/resource-key.ts";
import { deploymentWriter } from "./written-by.ts";

/** Looks up stored resources by name: a state store, or one with pending commits on top. */
export interface StateView {
	/** The resource stored under the name, whatever its uid and group version. */
	lookup(id: ResourceName): Resource | undefined;
}

/** What one mutation does to the state that it was evaluated against. */
export type MutationEffect =
	| {
			readonly kind: "put";
			/** As passed by the caller: without the version of the commit. */
			readonly resource: Resource;
			readonly replaced: Resource | undefined;
	  }
	| { readonly kind: "delete"; readonly stored: Resource }
	| { readonly kind: "none" };

/** A change of the state. */
export interface StateChange {
	readonly op: "put" | "delete";
	/** The stored resource; for a deletion, the last one. */
	readonly resource: Resource;
	/** See `CommitOptions.writtenBy`; absent if another server has made the commit. */
	readonly writtenBy?: string | undefined;
}

/**
 * Decides a commit: checks the expected version and uid of each mutation and returns one effect per
 * mutation. All conditions apply to the state before the commit, which is not changed here. Every backend
 * decides by this function, or by conditions derived from its effects.
 *
 * @throws CasFailure or WrongUid (if both apply, WrongUid: retrying can't fix it); TypeError if
 *   an id lacks type or name, or two mutations write one name, which are bugs of the caller.
 */
export function evaluateMutations(
	mutations: readonly Mutation[],
	state: StateView,
): readonly MutationEffect[] {
	const effects: MutationEffect[] = [];
	const failures: { readonly index: number; readonly kind: "cas" | "uid" }[] = [];
	const written = new WrittenNames();
	let index = 0;
	for (const mutation of mutations) {
		const id = idOf(mutation);
		if (mutation.op !== "assert") {
			written.add(id);
		}
		const effect = decide(mutation, state.lookup(id), mutations.length === 1);
		if (typeof effect === "string") {
			failures.push({ index, kind: effect });
		} else {
			effects.push(effect);
		}
		index += 1;
	}
	if (failures.length > 0) {
		throw failure(mutations, failures);
	}
	return effects;
}

/** The names that a commit writes. Most commits write one, which needs no key. */
class WrittenNames {
	#first: ID | undefined;
	#keys: Set<string> | undefined;

	/** @throws TypeError if the name was added before. */
	add(id: ID): void {
		if (this.#first === undefined) {
			this.#first = id;
			return;
		}
		this.#keys ??= new Set([nameKey(this.#first)]);
		const key = nameKey(id);
		if (this.#keys.has(key)) {
			throw new TypeError(`commit writes ${displayName(id)} twice`);
		}
		this.#keys.add(key);
	}
}

const nothing: MutationEffect = { kind: "none" };

function decide(
	mutation: Mutation,
	stored: Resource | undefined,
	alone: boolean,
): MutationEffect | "cas" | "uid" {
	switch (mutation.op) {
		case "put":
			return decidePut(mutation, stored);
		case "delete":
			return decideDelete(mutation, stored, alone);
		case "assert":
			return decideAssert(mutation, stored);
	}
}

type MutationOf<Op extends Mutation["op"]> = Extract<Mutation, { readonly op: Op }>;

function decidePut(
	{ resource, expectedVersion }: MutationOf<"put">,
	stored: Resource | undefined,
): MutationEffect | "cas" | "uid" {
	if (stored === undefined || expectedVersion === "") {
		return stored === undefined && expectedVersion === ""
			? { kind: "put", resource, replaced: undefined }
			: "cas";
	}
	if (stored.id?.uid !== resource.id?.uid) {
		return "uid";
	}
	return stored.version === expectedVersion ? { kind: "put", resource, replaced: stored } : "cas";
}

function decideDelete(
	{ id, expectedVersion }: MutationOf<"delete">,
	stored: Resource | undefined,
	alone: boolean,
): MutationEffect | "cas" | "uid" {
	if (stored === undefined) {
		return nothing;
	}
	if (id.uid !== "" && stored.id?.uid !== id.uid) {
		return alone ? nothing : "uid";
	}
	return stored.version === expectedVersion ? { kind: "delete", stored } : "cas";
}

function decideAssert(
	mutation: MutationOf<"assert">,
	stored: Resource | undefined,
): MutationEffect | "cas" | "uid" {
	if (mutation.expectedVersion === "") {
		return stored === undefined ? nothing : "cas";
	}
	if (stored === undefined) {
		return "cas";
	}
	const uid = mutation.uid || mutation.id.uid;
	if (uid !== "" && stored.id?.uid !== uid) {
		return "uid";
	}
	const { expectedVersion = stored.version } = mutation;
	return stored.version === expectedVersion ? nothing : "cas";
}

function idOf(mutation: Mutation): ID {
	return mutation.op === "put"
		? requireNamed(mutation.resource.id, "put")
		: requireNamed(mutation.id, mutation.op);
}

function failure(
	mutations: readonly Mutation[],
	failures: readonly { readonly index: number; readonly kind: "cas" | "uid" }[],
): CasFailure | WrongUid {
	const kind = failures.some((each) => each.kind === "uid") ? "uid" : "cas";
	const indexes = failures.filter((each) => each.kind === kind).map((each) => each.index);
	const names = indexes.flatMap((index) => {
		const mutation = mutations[index];
		return mutation === undefined ? [] : [displayName(idOf(mutation))];
	});
	return kind === "uid" ? new WrongUid(indexes, names) : new CasFailure(indexes, names);
}

/** Whether the effects leave the state as it is. */
export function changesNothing(effects: readonly MutationEffect[]): boolean {
	return effects.every((effect) => effect.kind === "none");
}

/**
 * Assigns the version to the effects. Returns the result of the commit, and the changes to apply. The
 * resources in both are the same objects, frozen in development.
 *
 * @param writtenBy See `CommitOptions.writtenBy`.
 */
export function assignVersion(
	effects: readonly MutationEffect[],
	version: string,
	writtenBy: string = deploymentWriter,
): { readonly commit: CommitResult; readonly changes: readonly StateChange[] } {
	const changes: StateChange[] = [];
	const resources: (Resource | undefined)[] = [];
	for (const effect of effects) {
		let stored: Resource | undefined;
		if (effect.kind === "put") {
			stored = freezeInDevelopment({ ...effect.resource, version });
			changes.push({ op: "put", resource: stored, writtenBy });
		} else if (effect.kind === "delete") {
			changes.push({ op: "delete", resource: effect.stored, writtenBy });
		}
		resources.push(stored);
	}
	return { commit: { version, resources }, changes };
}

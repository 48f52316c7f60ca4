import { nameKey } from "@plinth/resource";
import type { StorageBackend } from "@plinth/storage";
import { recordedBackend, type StoredChange } from "@plinth/storage/testing";
import type { Origin } from "../../testdata/gen/acme/market/v1/market_pb.ts";
import { originIn } from "./market-model.fixture.ts";

/** The first and last revision at which a type was in one state; the current state has no end. */
interface Span {
	readonly first: number;
	last: number;
}

/** All states that one type was in. A state is the version of each resource, by name. */
class TypeHistory {
	readonly #versions = new Map<string, string>();
	readonly #spans = new Map<string, Span>();
	#current: Span = { first: 0, last: Number.POSITIVE_INFINITY };

	constructor() {
		this.#spans.set("", this.#current);
	}

	set(name: string, version: string | undefined, revision: number): void {
		if (version === undefined) {
			this.#versions.delete(name);
		} else {
			this.#versions.set(name, version);
		}
		this.#current.last = revision - 1;
		const state = stateOf(this.#versions);
		const known = this.#spans.get(state);
		this.#current = known ?? { first: revision, last: Number.POSITIVE_INFINITY };
		this.#current.last = Number.POSITIVE_INFINITY;
		this.#spans.set(state, this.#current);
	}

	find(view: Readonly<Record<string, string>>): Span | undefined {
		return this.#spans.get(stateOf(Object.entries(view)));
	}
}

function stateOf(versions: Iterable<readonly [string, string]>): string {
	return [...versions]
		.map(([name, version]) => `${name}@${version}`)
		.sort()
		.join();
}

/**
 * The rewind check. Each computed resource records the versions of each type that its controller's cache
 * contained. The history of all stored versions determines at which revision the type was in that state:
 *
 * - if it never was, the cache was incomplete;
 * - if the state is older than the one that the same resource was computed from before, it is a rewind;
 * - if the state lacks an acknowledged write of the controller to that resource, it is a rewind, too.
 */
export class StoredHistory {
	readonly violations: string[] = [];
	/** All stored changes, in order. */
	transcript = "";
	readonly #types = new Map<string, TypeHistory>();
	/** By computed resource and type, the revision that it has been computed from at least. */
	readonly #reached = new Map<string, number>();
	/** By computed resource, the newest revision of an acknowledged write to it. */
	readonly #acknowledged = new Map<string, number>();

	/** Decorates the storage so that all later changes are recorded in the history. */
	record(backend: StorageBackend): StorageBackend {
		return recordedBackend(backend, (change) => this.#onChange(change));
	}

	#onChange(change: StoredChange): void {
		const revision = Number(change.version);
		const id = change.kind === "put" ? change.resource.id : change.id;
		const kind = id?.type?.kind;
		if (id === undefined || kind === undefined) {
			return;
		}
		this.transcript += `${change.version} ${change.kind} ${kind} ${id.name} ${id.uid}\n`;
		if (change.kind === "put") {
			const origin = originIn(change.resource);
			if (origin !== undefined) {
				this.#check(nameKey(id), kind, origin);
			}
		}
		const version = change.kind === "put" ? change.resource.version : undefined;
		this.#type(kind).set(id.name, version, revision);
	}

	/** A write or deletion was acknowledged to the controller. */
	onAcknowledged(key: string, version: string): void {
		this.#acknowledged.set(key, Math.max(this.#acknowledged.get(key) ?? 0, Number(version)));
	}

	#check(key: string, ownKind: string, origin: Origin): void {
		for (const [kind, { versions }] of Object.entries(origin.views)) {
			const span = this.#type(kind).find(versions);
			const view = JSON.stringify(versions);
			if (span === undefined) {
				this.violations.push(
					`${key} was computed from ${kind} ${view}, a state that never existed`,
				);
				continue;
			}
			const reachedKey = `${key} ${kind}`;
			const reached = this.#reached.get(reachedKey) ?? 0;
			if (span.last < reached) {
				this.violations.push(
					`${key} went back: computed from ${kind} ${view}, as of ${span.last} at the latest, after ${reached}`,
				);
			}
			this.#reached.set(reachedKey, Math.max(reached, span.first));
			const acknowledged = this.#acknowledged.get(key) ?? 0;
			if (kind === ownKind && span.last < acknowledged) {
				this.violations.push(
					`${key} went back: computed without knowledge of its own write ${acknowledged}`,
				);
			}
		}
	}

	#type(kind: string): TypeHistory {
		let type = this.#types.get(kind);
		if (type === undefined) {
			type = new TypeHistory();
			this.#types.set(kind, type);
		}
		return type;
	}
}

import { nameKey } from "@plinth/resource";
import type { StorageBackend } from "@plinth/storage";
import { recordedBackend, type StoredChange } from "@plinth/storage/testing";
import type { Origin } from "../../testdata/gen/acme/market/v1/market_pb.ts";
import { originIn } from "./market-model.fixture.ts";

/** At which revisions a type was in one state: first and last; that of now lasts for ever. */
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
 * The rewind check. Each computed resource says what its controller's cache held of each type when
 * it was computed. From the history of what was stored follows when that was:
 *
 * - what no type ever was like was computed from a cache with holes in it;
 * - what was older than what the same resource was computed from before is a rewind;
 * - so is what did not know a write of the controller's own, to that resource, which had been
 *   acknowledged.
 */
export class StoredHistory {
	readonly violations: string[] = [];
	/** What was stored, in order. */
	story = "";
	readonly #types = new Map<string, TypeHistory>();
	/** By computed resource and type, the revision that it has certainly been computed from. */
	readonly #reached = new Map<string, number>();
	/** By computed resource, the newest revision at which the controller knows to have written it. */
	readonly #acknowledged = new Map<string, number>();

	/** The storage, with all that it stores from now on in the history. */
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
		this.story += `${change.version} ${change.kind} ${kind} ${id.name} ${id.uid}\n`;
		if (change.kind === "put") {
			const origin = originIn(change.resource);
			if (origin !== undefined) {
				this.#check(nameKey(id), kind, origin);
			}
		}
		const version = change.kind === "put" ? change.resource.version : undefined;
		this.#type(kind).set(id.name, version, revision);
	}

	/** The controller has learnt that what it wrote or deleted was stored. */
	onAcknowledged(key: string, version: string): void {
		this.#acknowledged.set(key, Math.max(this.#acknowledged.get(key) ?? 0, Number(version)));
	}

	#check(key: string, ownKind: string, origin: Origin): void {
		for (const [kind, { versions }] of Object.entries(origin.views)) {
			const span = this.#type(kind).find(versions);
			const view = JSON.stringify(versions);
			if (span === undefined) {
				this.violations.push(`${key} was computed of ${kind} ${view}, which never was`);
				continue;
			}
			const reachedKey = `${key} ${kind}`;
			const reached = this.#reached.get(reachedKey) ?? 0;
			if (span.last < reached) {
				this.violations.push(
					`${key} went back: computed of ${kind} ${view}, as of ${span.last} at the latest, after ${reached}`,
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

import { create } from "@bufbuild/protobuf";
import type { ImportRecord } from "@plinth/proto/gen/plinth/peering/v1/peering_record_pb.js";
import {
	type LeftOut,
	LeftOutSchema,
} from "@plinth/proto/gen/plinth/peering/v1/peering_service_pb.js";
import { peeringLimits } from "../limits.ts";

/** The longest reason that is kept, in characters. */
const reasonLength = 300;

/** What of a record says what was left out. */
type RecordedLeftOut = Pick<ImportRecord, "leftOut" | "leftOutTotal">;

/**
 * What an import could not copy: all of it is counted, and the first hundred are named. Of the others, only the number is
 * kept, however many a peer sends: it may be too high until the next snapshot, since one that is copied or removed later is not
 * recognized, and one that is sent twice counts twice.
 *
 * A record has the number of the others, but not of which types they are. Within a run of an import, the former stream knows
 * that. After a restart nobody does: then all types are to be requested again, and until all have been sent, the total is never
 * below the recorded one. So nothing that is missing is forgotten, also if the import is interrupted once more.
 */
export class LeftOutResources {
	/** By type, then by namespace and name; the key of a whole type is empty. */
	readonly #named = new Map<string, Map<string, LeftOut>>();
	/** How many others there are of each type. */
	readonly #others: Map<string, number>;
	/** How many others there are at least, as long as it is not known of which types they are. */
	#ofUnknownTypes: number;
	/** The names as they were recorded. */
	#recorded: readonly LeftOut[] = [];
	/** Of which types the others are that the record counts; `undefined` if that is not known. */
	#recordedOthers: ReadonlyMap<string, number> | undefined;

	/** Begins with names, and with the number of others: of each type, or of types that are not known. */
	constructor(
		named: readonly LeftOut[] = [],
		others: ReadonlyMap<string, number> = new Map(),
		ofUnknownTypes = 0,
	) {
		this.#others = new Map(others);
		this.#ofUnknownTypes = ofUnknownTypes;
		for (const each of named) {
			this.add(each.type, each, each.reason);
		}
	}

	/**
	 * Continues with what was recorded of resources whose types are still streamed. Whole types are to be added again.
	 *
	 * @param streamed - the keys of the types.
	 * @param former - of the former stream of the same run; empty for the first one.
	 */
	static continued(
		{ leftOut, leftOutTotal }: RecordedLeftOut,
		streamed: ReadonlySet<string>,
		former: LeftOutResources,
	): LeftOutResources {
		const named = leftOut.filter(({ type, name }) => name !== "" && streamed.has(type));
		const others = Number(leftOutTotal) - leftOut.length;
		const known = former.#recordedOthers ?? new Map<string, number>();
		if (sumOf(known) !== others) {
			return new LeftOutResources(named, new Map(), others);
		}
		const still = [...known].filter(([type]) => streamed.has(type));
		const continued = new LeftOutResources(named, new Map(still));
		continued.#recordedOthers = known;
		return continued;
	}

	/** How many there are. */
	get total(): number {
		return this.#namedCount + Math.max(this.#ofUnknownTypes, sumOf(this.#others));
	}

	/** Whether it is not known of which types some are: all types are to be requested again. */
	get hasUnknownTypes(): boolean {
		return this.#ofUnknownTypes > 0;
	}

	/** All types were sent again: what is left out of each is known. */
	allSent(): void {
		this.#ofUnknownTypes = 0;
	}

	/** The first of them. */
	get named(): readonly LeftOut[] {
		return [...this.#named.values()].flatMap((each) => [...each.values()]);
	}

	/** Whether the names have changed since they were recorded. */
	get isChanged(): boolean {
		const { named } = this;
		return (
			named.length !== this.#recorded.length ||
			named.some((each, at) => each !== this.#recorded[at])
		);
	}

	/** They are recorded as they are now. */
	recorded(): void {
		this.#recorded = this.named;
		this.#recordedOthers = this.hasUnknownTypes ? undefined : new Map(this.#others);
	}

	/** The types of which something was left out. */
	get types(): readonly string[] {
		return [...new Set([...this.#named.keys(), ...this.#others.keys()])];
	}

	/** @param name - empty for the whole type. */
	add(
		type: string,
		{ namespace, name }: { namespace: string; name: string },
		reason: string,
	): void {
		const key = name === "" ? "" : `${namespace}/${name}`;
		const ofType = this.#named.get(type) ?? new Map<string, LeftOut>();
		if (!ofType.has(key) && this.#namedCount >= peeringLimits.namedLeftOut) {
			this.#others.set(type, (this.#others.get(type) ?? 0) + 1);
			return;
		}
		const entry = create(LeftOutSchema, {
			...{ type, namespace, name },
			reason: reason.slice(0, reasonLength),
		});
		ofType.set(key, entry);
		this.#named.set(type, ofType);
	}

	/** It was copied or removed. */
	remove(type: string, { namespace, name }: { namespace: string; name: string }): void {
		const ofType = this.#named.get(type);
		ofType?.delete(`${namespace}/${name}`);
		if (ofType?.size === 0) {
			this.#named.delete(type);
		}
	}

	/** Forgets what is left out of a type. */
	clear(type: string): void {
		this.#named.delete(type);
		this.#others.delete(type);
	}

	get #namedCount(): number {
		return this.#named.values().reduce((sum, { size }) => sum + size, 0);
	}
}

function sumOf(counts: ReadonlyMap<string, number>): number {
	return counts.values().reduce((sum, count) => sum + count, 0);
}

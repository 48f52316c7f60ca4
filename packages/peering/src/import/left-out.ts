import { create } from "@bufbuild/protobuf";
import {
	type LeftOut,
	LeftOutSchema,
} from "@plinth/proto/gen/plinth/peering/v1/peering_service_pb.js";
import { peeringLimits } from "../limits.ts";

/** The longest reason that is kept, in characters. */
const reasonLength = 300;

/**
 * What an import could not copy: all of it is counted, and the first hundred are named. Of the others, only the number is
 * kept, however many a peer sends: it may be too high until the next snapshot, since one that is copied or removed later is not
 * recognized, and one that is sent twice counts twice.
 */
export class LeftOutResources {
	/** By type, then by namespace and name; the key of a whole type is empty. */
	readonly #named = new Map<string, Map<string, LeftOut>>();
	/** How many others there are of each type. */
	readonly #others = new Map<string, number>();
	/** The names as they were recorded. */
	#recorded: readonly LeftOut[] = [];

	/** Continues with what was recorded: names, and how many there were. */
	constructor(named: readonly LeftOut[] = [], total = named.length) {
		for (const each of named) {
			this.add(each.type, each, each.reason);
		}
		const others = total - named.length;
		const type = named.at(-1)?.type;
		if (others > 0 && type !== undefined) {
			// The names are in the order of the types, so that most others are of the last one.
			this.#others.set(type, others);
		}
	}

	/** How many there are. */
	get total(): number {
		return this.#others.values().reduce((sum, count) => sum + count, this.#namedCount);
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

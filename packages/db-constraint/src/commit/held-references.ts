import type { OutgoingReference } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { isPlanted } from "../fault-points.ts";
import { type LocatedReference, nameOfLocated } from "../schema/locate-references.ts";
import { nameOfField } from "../shadow/recorded-reference.ts";
import type { RecordedReferences } from "../shadow/recorded-references.ts";
import { type KeyLike, keyString } from "../shadow/resource-key.ts";

/** A resource as it is stored, before the references that are planned. */
export interface StoredReferences {
	/** Its references by the active schema. Called on first use. */
	readonly references: () => readonly LocatedReference[];
	/** Whether it is of another version of its type, whose fields have other numbers. Default: false. */
	readonly isOtherVersion?: boolean;
	/**
	 * Whether the deployment of a record is known, or one that has taken over from it. What a write adds is not established with a
	 * deployment that is gone. Default: it is.
	 */
	readonly isDeploymentKnown?: (record: OutgoingReference) => boolean;
}

/**
 * What the references of one resource hold. Several fields may name one target, and hold incarnations of it in different
 * deployments.
 *
 * Invariant: each field has a record of its own, which stays with it whatever rules and names a new schema gives to it and to
 * others. A field without a record takes that of another one with its rule, if that is recorded by this rule: for that the
 * target has a source already. What another field has lost is no matter of it, unless a write moves it from there.
 */
export class HeldReferences {
	readonly #recorded: RecordedReferences;
	readonly #planned: readonly LocatedReference[];
	readonly #stored: StoredReferences;
	/** The stored references, as `#nameOf`, computed on first use. */
	#storedByName: ReadonlyMap<string, LocatedReference> | undefined;
	/** The same, by target. */
	#storedByTarget: ReadonlyMap<string, readonly LocatedReference[]> | undefined;
	/** Those that are planned, as `#nameOf`, computed on first use. */
	#plannedNames: ReadonlySet<string> | undefined;
	/** What fields without a record take, by target and rule, computed on first use: thousands of fields may name one target. */
	readonly #others = new Map<string, OutgoingReference | undefined>();

	/**
	 * @param planned - the references of the resource by the active schema, as it is planned.
	 * @param stored - by default, the same: nothing is written.
	 */
	constructor(
		recorded: RecordedReferences,
		planned: readonly LocatedReference[],
		stored: StoredReferences = { references: () => planned },
	) {
		this.#recorded = recorded;
		this.#planned = planned;
		this.#stored = stored;
	}

	/** Whether the resource does not have the reference yet by its rule, whatever its shadow records. */
	isAdded(reference: LocatedReference): boolean {
		const stored = this.#byName.get(this.#nameOf(reference));
		if (isPlanted("take fields that a write adds for those of before")) {
			return false;
		}
		if (isPlanted("leave the rules of another version to a derivation") && stored) {
			return false;
		}
		// Another version of the type may have another rule.
		return stored?.rule !== reference.rule;
	}

	/** The record of what a reference holds, by its rule or by that of an earlier schema. */
	of(reference: LocatedReference): OutgoingReference | undefined {
		if (isPlanted("take what another reference of the target holds")) {
			return this.#recordsTo(reference.target).find(isHeld);
		}
		const record = this.#recordOf(reference);
		return record !== undefined && isHeld(record) ? record : undefined;
	}

	/** The record of a reference by its rule, with a target or without. */
	recordOf(reference: LocatedReference): OutgoingReference | undefined {
		const record = this.#recordOf(reference);
		return record?.rule === reference.rule ? record : undefined;
	}

	/** The record by which a reference holds its target with the rule of an earlier schema. */
	earlierOf(reference: LocatedReference): OutgoingReference | undefined {
		const record = this.#recordOf(reference);
		return record !== undefined && isHeld(record) && record.rule !== reference.rule
			? record
			: undefined;
	}

	/** The record of what a reference has lost, by whatever rule. */
	lostOf(reference: LocatedReference): OutgoingReference | undefined {
		if (isPlanted("forget what was lost when a rule changes")) {
			return undefined;
		}
		const record = this.#recordOf(reference);
		if (record !== undefined && !isHeld(record)) {
			return record;
		}
		return isPlanted("take what another field has lost")
			? this.#recordsTo(reference.target).find((each) => !isHeld(each))
			: undefined;
	}

	#recordOf(reference: LocatedReference): OutgoingReference | undefined {
		const own = this.#ownOf(reference);
		// A wrong type never has a target.
		return own ?? (reference.wrongType === undefined ? this.#ofOther(reference) : undefined);
	}

	#ownOf(reference: LocatedReference): OutgoingReference | undefined {
		const own = this.#recordOfField(reference);
		if (isPlanted("take the record of a field by its former rule")) {
			const ofRule = this.#recordsTo(reference.target).filter(isHeld);
			return ofRule.find(({ rule }) => rule === reference.rule) ?? own;
		}
		if (isPlanted("take what another field holds") && !(own && isHeld(own))) {
			return this.#recordsTo(reference.target).find(isHeld) ?? own;
		}
		return own;
	}

	#recordOfField(reference: LocatedReference): OutgoingReference | undefined {
		// Most have a record, and then the stored resource need not be read.
		const own = this.#isOtherVersion ? undefined : this.#recorded.of(reference);
		if (own !== undefined) {
			return own;
		}
		const stored = this.#byName.get(this.#nameOf(reference));
		return stored && this.#recordOfStored(stored);
	}

	#recordOfStored(stored: LocatedReference): OutgoingReference | undefined {
		return this.#recorded.of(stored) ?? this.#recorded.olderOf(stored);
	}

	/** The record that a field without one takes. */
	#ofOther(reference: LocatedReference): OutgoingReference | undefined {
		const { target, rule } = reference;
		const isAdded = this.isAdded(reference);
		const name = `${keyString(target)} ${rule} ${isAdded}`;
		if (!this.#others.has(name)) {
			this.#others.set(name, this.#ofSame(target, rule, isAdded));
		}
		return this.#others.get(name);
	}

	/** The record of another field with the target and the rule, preferably of one that has the target. */
	#ofSame(
		target: KeyLike,
		rule: LocatedReference["rule"],
		isAdded: boolean,
	): OutgoingReference | undefined {
		if (isPlanted("establish what another field with the rule holds")) {
			return undefined;
		}
		const same = this.#storedTo(target).flatMap((stored) => {
			const isRight =
				stored.wrongType === undefined || isPlanted("take a corrected type for a moved one");
			const record = isRight && stored.rule === rule ? this.#recordOfStored(stored) : undefined;
			return record?.rule === rule ? [{ stored, record }] : [];
		});
		const isMoved = ({ stored }: (typeof same)[number]) => isAdded && !this.#isPlanned(stored);
		const isKnown = ({ record }: (typeof same)[number]) =>
			this.#stored.isDeploymentKnown?.(record) !== false ||
			isPlanted("add to what a deleted deployment has stored");
		const held = same.find(
			(each) => isHeld(each.record) && (!isAdded || isMoved(each) || isKnown(each)),
		)?.record;
		const lost = same.find(
			(each) => isMoved(each) || isPlanted("copy what another field has lost"),
		);
		return held ?? lost?.record;
	}

	get #isOtherVersion(): boolean {
		return (
			this.#stored.isOtherVersion === true &&
			!isPlanted("know the fields of another version by their numbers")
		);
	}

	/** What distinguishes a reference from others of the resource, in both versions. */
	#nameOf(reference: LocatedReference): string {
		return this.#isOtherVersion
			? nameOfField({ ...reference, field: "" })
			: nameOfLocated(reference);
	}

	#isPlanned(reference: LocatedReference): boolean {
		this.#plannedNames ??= new Set(this.#planned.map((each) => this.#nameOf(each)));
		return this.#plannedNames.has(this.#nameOf(reference));
	}

	get #byName(): ReadonlyMap<string, LocatedReference> {
		this.#storedByName ??= new Map(
			this.#stored.references().map((each) => [this.#nameOf(each), each]),
		);
		return this.#storedByName;
	}

	#storedTo(target: KeyLike): readonly LocatedReference[] {
		this.#storedByTarget ??= Map.groupBy(this.#stored.references(), (each) =>
			keyString(each.target),
		);
		return this.#storedByTarget.get(keyString(target)) ?? [];
	}

	/** The records of all stored references to a target. */
	#recordsTo(target: KeyLike): readonly OutgoingReference[] {
		return this.#storedTo(target).flatMap((each) => this.#recordOfStored(each) ?? []);
	}
}

function isHeld({ targetUid }: OutgoingReference): boolean {
	return targetUid !== "";
}

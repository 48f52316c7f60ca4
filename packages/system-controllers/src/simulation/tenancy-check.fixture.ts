import type { ID, Resource } from "@plinth/proto";
import {
	displayName,
	isMarkedForDeletion,
	Namespace,
	Partition,
	Tombstone,
} from "@plinth/resource";
import type { Origin, Revision } from "./follower.fixture.ts";

/**
 * Checks after every commit, against the complete stored state: when a namespace or partition is removed, it is
 * empty, and resources are only created in existing, unmarked units.
 */
export class TenancyCheck {
	readonly violations: string[] = [];
	/** The number of units that were removed. */
	removed = 0;
	readonly #origin: Origin;

	constructor(origin: Origin) {
		this.#origin = origin;
		origin.onRevision((revision) => this.#check(revision));
	}

	#check({ version, changes, replaced }: Revision): void {
		for (const [at, { op, resource }] of changes.entries()) {
			const { id } = resource;
			if (id === undefined) {
				continue;
			}
			if (op === "delete" && isUnit(id)) {
				this.removed += 1;
				this.#checkEmpty(id, version);
			} else if (op === "put" && replaced[at] === undefined && !isOf(id, Tombstone)) {
				this.#checkUnits(id, version);
			}
		}
	}

	#checkEmpty(unit: ID, version: number): void {
		const left = [...this.#origin.stored.values()].filter(({ id }) => id && isIn(id, unit));
		if (left.length > 0) {
			const names = left.map(({ id }) => id && displayName(id)).join(", ");
			this.violations.push(`${version}: ${displayName(unit)} is removed, and holds ${names}`);
		}
	}

	#checkUnits(id: ID, version: number): void {
		const { partition = "", namespace = "" } = id.tenancy ?? {};
		const exists = (matches: (unit: ID) => boolean) =>
			[...this.#origin.stored.values()].some(
				(unit: Resource) => unit.id && matches(unit.id) && !isMarkedForDeletion(unit),
			);
		const hasPartition =
			partition === "" || exists((unit) => isOf(unit, Partition) && unit.name === partition);
		const hasNamespace =
			namespace === "" ||
			exists(
				(unit) =>
					isOf(unit, Namespace) && unit.name === namespace && unit.tenancy?.partition === partition,
			);
		if (!hasPartition || !hasNamespace) {
			this.violations.push(
				`${version}: ${displayName(id)} is created in a unit that is being deleted`,
			);
		}
	}
}

function isUnit(id: ID): boolean {
	return isOf(id, Namespace) || isOf(id, Partition);
}

function isOf({ type }: ID, { type: of }: typeof Namespace | typeof Partition | typeof Tombstone) {
	return type?.group === of.group && type.kind === of.kind;
}

function isIn({ tenancy }: ID, unit: ID): boolean {
	return isOf(unit, Partition)
		? tenancy?.partition === unit.name
		: tenancy?.partition === unit.tenancy?.partition && tenancy?.namespace === unit.name;
}

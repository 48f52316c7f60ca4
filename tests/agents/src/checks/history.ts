import { Good } from "@plinth/peering/testing";
import type { Resource } from "@plinth/proto";
import { decodeShared } from "@plinth/resource";
import {
	type Base,
	keyOf,
	type Revision,
	type StorageListener,
} from "../cluster/shared-storage.ts";

/** A change of a good. */
export interface Change {
	readonly kind: "upsert" | "delete";
	readonly key: string;
	readonly resource: Resource;
}

/** The goods that a cluster has had since one revision. */
export interface HistoryEntry {
	readonly revision: number;
	/** `undefined` if the storage was restored: then no watch goes on. */
	readonly changes: readonly Change[] | undefined;
	/** All goods, by the keys of their names. */
	readonly goods: ReadonlyMap<string, Resource>;
}

/** All that was ever stored in a cluster: what clients see must be explained by it. */
export class History implements StorageListener {
	readonly entries: HistoryEntry[] = [{ revision: 0, changes: [], goods: new Map() }];

	committed({ revision, changes }: Revision): void {
		const goods = new Map(this.last.goods);
		const ofGoods = changes.filter(({ resource }) => isGood(resource));
		for (const { op, resource } of ofGoods) {
			if (op === "put") {
				goods.set(keyOf(resource), resource);
			} else {
				goods.delete(keyOf(resource));
			}
		}
		this.entries.push({
			...{ revision, goods },
			changes: ofGoods.map(({ op, resource }) => ({
				...{ kind: op === "put" ? "upsert" : "delete", key: keyOf(resource), resource },
			})),
		});
	}

	restored({ revision, resources }: Base): void {
		const goods = new Map([...resources].filter(([, resource]) => isGood(resource)));
		this.entries.push({ revision, changes: undefined, goods });
	}

	get last(): HistoryEntry {
		const last = this.entries.at(-1);
		if (last === undefined) {
			throw new Error("a history has a first entry");
		}
		return last;
	}

	/** The position of the entry that a version is in. */
	indexAt(version: number): number {
		return this.entries.findLastIndex(({ revision }) => revision <= version);
	}

	/** The states that a cluster was in from a version on, the one at that version included. */
	statesFrom(version: number): readonly HistoryEntry[] {
		return this.entries.slice(Math.max(0, this.indexAt(version)));
	}
}

/** The note of a good: which write it is from. */
export function noteOf(resource: Resource): string {
	return decodeShared(Good, resource).data.note;
}

function isGood({ id }: Resource): boolean {
	return id?.type?.kind === Good.type.kind;
}

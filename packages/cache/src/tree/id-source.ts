import type { Decoded, ResourceType } from "@plinth/resource";
import { CacheError } from "../cache-error.ts";
import type { ReferenceLike } from "../key.ts";
import type { Source } from "../source.ts";
import { Entry } from "./node.ts";
import { SnapshotIterator } from "./snapshot-iterator.ts";
import type { Table } from "./table.ts";
import { visitScope } from "./visit.ts";

/** The resources of a type by ID, for readers. */
export class IdSource implements Source {
	readonly #table: Table;
	/** The type that readers decode the data as: the table's type, or another group version of it. */
	readonly #type: ResourceType;

	constructor(table: Table, type: ResourceType) {
		this.#table = table;
		this.#type = type;
	}

	find(id: unknown): Decoded | undefined {
		const entry = this.#table.find(this.#whole(id));
		return entry && this.#item(entry);
	}

	get([id]: readonly unknown[]): Decoded | undefined {
		return this.find(id);
	}

	list([prefix]: readonly unknown[]): Decoded[] {
		const scope = this.#table.scope(this.#prefix(prefix));
		if (scope === undefined || scope instanceof Entry) {
			return scope === undefined ? [] : [this.#item(scope)];
		}
		const items: Decoded[] = [];
		visitScope(scope, (entries) => {
			for (const entry of entries) {
				items.push(this.#item(entry));
			}
		});
		return items;
	}

	iterate([prefix]: readonly unknown[]): IteratorObject<Decoded, undefined> {
		const scope = this.#table.scope(this.#prefix(prefix));
		if (scope === undefined || scope instanceof Entry) {
			return (scope === undefined ? [] : [this.#item(scope)]).values();
		}
		const entries = new SnapshotIterator(this.#table.ids, scope);
		return this.#type === this.#table.type ? entries : entries.map((entry) => this.#item(entry));
	}

	parents(args: readonly unknown[]): Decoded[] {
		const item = this.get(args);
		return item === undefined ? [] : [item];
	}

	#item(entry: Entry): Decoded {
		return this.#type === this.#table.type ? entry : new Entry(this.#type, entry.resource);
	}

	#whole(id: unknown): ReferenceLike {
		if (!isReference(id) || typeof id.name !== "string") {
			throw new CacheError(`${this.#type.key} by ID: bad argument: expected an ID or a reference`);
		}
		return id;
	}

	#prefix(prefix: unknown): ReferenceLike {
		if (prefix === undefined) {
			return {};
		}
		if (!isReference(prefix)) {
			throw new CacheError(
				`${this.#type.key} by ID: bad argument: expected an ID, a reference or a part of one`,
			);
		}
		return prefix;
	}
}

function isReference(value: unknown): value is ReferenceLike {
	return typeof value === "object" && value !== null;
}

import type { ID, Reference } from "@plinth/proto";
import BTreeModule from "sorted-btree";
import { referenceKey } from "../src/index.ts";
import type { Contender, IndexCount } from "./contender.ts";
import type { AlbumItem } from "./data-set.ts";

const BTree = BTreeModule.default;
type Tree = InstanceType<typeof BTree<string, AlbumItem>>;

/** A library's B-tree (sorted-btree) for each index, over keys that are built as strings. */
export class LibraryBTree implements Contender {
	readonly #byId: Tree = new BTree();
	readonly #indexes: readonly {
		readonly tree: Tree;
		readonly keys: (item: AlbumItem) => string[];
	}[];

	constructor(indexes: IndexCount) {
		const keys: ((item: AlbumItem) => string[])[] = [
			({ data }) => (data.label ? [referenceString(data.label)] : []),
			({ data }) => data.artists.map(referenceString),
			({ data }) => [pathString(data.path)],
			({ resource }) => (resource.owner ? [referenceString(resource.owner)] : []),
			({ data }) => [`${data.title}\0`],
		];
		this.#indexes = keys.slice(0, indexes).map((keys) => ({ tree: new BTree(), keys }));
	}

	insertAll(items: readonly AlbumItem[]): void {
		for (const item of items) {
			// The data set gives each an ID.
			const id = idString(item.resource.id!);
			const before = this.#byId.get(id);
			this.#byId.set(id, item);
			for (const { tree, keys } of this.#indexes) {
				for (const key of before === undefined ? [] : keys(before)) {
					tree.delete(key + id);
				}
				for (const key of keys(item)) {
					tree.set(key + id, item);
				}
			}
		}
	}

	deleteAll(ids: readonly ID[]): void {
		for (const id of ids) {
			const key = idString(id);
			const item = this.#byId.get(key);
			if (item !== undefined) {
				this.#byId.delete(key);
				for (const { tree, keys } of this.#indexes) {
					for (const indexed of keys(item)) {
						tree.delete(indexed + key);
					}
				}
			}
		}
	}

	getAll(ids: readonly ID[]): number {
		let found = 0;
		for (const id of ids) {
			if (this.#byId.get(idString(id))?.resource !== undefined) {
				found++;
			}
		}
		return found;
	}

	listLabels(labels: readonly Reference[]): number {
		return this.#listAll(0, labels);
	}

	listGenres(genres: readonly Reference[]): number {
		return this.#listAll(1, genres);
	}

	#listAll(index: number, references: readonly Reference[]): number {
		let listed = 0;
		for (const reference of references) {
			listed += this.#list(index, referenceString(reference)).length;
		}
		return listed;
	}

	#list(index: number, prefix: string): AlbumItem[] {
		const items: AlbumItem[] = [];
		this.#indexes[index]?.tree.forRange(prefix, `${prefix}\uffff`, false, (_, item) => {
			items.push(item);
		});
		return items;
	}

	parents(paths: readonly string[]): number {
		let found = 0;
		for (const path of paths) {
			const items: AlbumItem[] = [];
			let prefix = "";
			for (const segment of path.split("/")) {
				prefix += `${segment}\0`;
				// What follows a whole key is its end, so that the children's are not met.
				items.push(...this.#list(2, `${prefix}\0`));
			}
			found += items.length;
		}
		return found;
	}
}

function idString({ tenancy, name }: ID): string {
	return `${tenancy?.partition}\0${tenancy?.namespace}\0${name}\0`;
}

function referenceString(reference: Reference | ID): string {
	return `${referenceKey({ type: reference.type, tenancy: reference.tenancy, name: reference.name }).join("\0")}\0`;
}

function pathString(path: string): string {
	return `${path.replaceAll("/", "\0")}\0\0`;
}

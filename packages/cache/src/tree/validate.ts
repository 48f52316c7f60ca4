import { keysEqual } from "../key.ts";
import { Candidate, Entry, entryBefore } from "./entry.ts";
import { keyOf, type Node } from "./node.ts";
import { type SegmentMap, segmentBefore } from "./segment-map.ts";
import { type Chunks, SortedList } from "./sorted-list.ts";
import type { Table } from "./table.ts";
import type { Tree } from "./tree.ts";
import { nodesOf, type TypeIndex } from "./type-index.ts";

/**
 * Checks all that must hold in a table: each entry is where its ID and its keys say and nowhere else,
 * and each tree is ordered, linked and free of empty nodes.
 *
 * @throws Error that says what does not hold: a bug.
 */
export function validateTable(table: Table): void {
	const entries = validateTree(table.ids);
	for (const [entry, nodes] of entries) {
		holds(nodes.length === 1 && nodes[0] === entry.parent, "an entry is filed under another ID");
		holds(table.find(entry.resource.id ?? { name: "" }) === entry, "an entry is not found by ID");
		holds(entry.places.length === table.indexes.length, "an entry has no place for each index");
	}
	for (const index of table.indexes) {
		validateIndex(table, index, new Set(entries.keys()));
	}
}

function validateIndex(table: Table, index: TypeIndex, known: ReadonlySet<Entry>): void {
	const { name } = index.definition;
	const found = validateTree(index.tree);
	for (const entry of found.keys()) {
		holds(known.has(entry), `index "${name}" has an entry that is gone`);
	}
	for (const entry of known) {
		const nodes = nodesOf(entry.places[index.at]);
		holds(keysEqual(nodes, found.get(entry) ?? []), `index "${name}" has an entry elsewhere`);
		const keys = index.keysOf(new Candidate(table.type, entry.resource));
		holds(
			keys.length === nodes.length && keys.every((key, i) => keysEqual(key, keyOfNth(nodes, i))),
			`index "${name}" has an entry under another key`,
		);
		holds(nodes.length < 2 || index.hasSeveralKeys, `index "${name}" misses several keys`);
	}
}

function keyOfNth(nodes: readonly Node[], i: number): readonly string[] {
	const node = nodes[i];
	return node === undefined ? [] : keyOf(node);
}

/** Checks a tree, and answers its entries with the nodes at which they are, by key. */
function validateTree(tree: Tree): Map<Entry, Node[]> {
	const found = new Map<Entry, Node[]>();
	const size = validateNode(tree.root, found);
	holds(size === tree.size, `a tree says that it has ${tree.size} entries, and has ${size}`);
	return found;
}

function validateNode(node: Node, found: Map<Entry, Node[]>): number {
	holds(!node.isEmpty || node.parent === undefined, "a node has neither entries nor children");
	let size = 0;
	for (const entry of entriesOf(node)) {
		const nodes = found.get(entry);
		nodes ? nodes.push(node) : found.set(entry, [node]);
		size++;
	}
	if (node.children !== undefined) {
		holds(node.children.size > 0, "a node has an empty map of children");
		for (const child of sortedItems(node.children)) {
			holds(child.parent === node, "a child belongs to another parent");
			size += validateNode(child, found);
		}
	}
	return size;
}

/** The entries of a node, its bucket checked. */
function entriesOf({ bucket }: Node): readonly Entry[] {
	if (bucket === undefined) {
		return [];
	}
	if (bucket instanceof Entry) {
		return [bucket];
	}
	holds(bucket.size > 0, "a bucket is empty");
	if (bucket instanceof SortedList) {
		return checkChunks(bucket.chunks, bucket.size, entryBefore);
	}
	return sortedItems(bucket);
}

/** The items of a map, by name; the order that it keeps, if it does, checked. */
function sortedItems<T extends { readonly segment: string }>(map: SegmentMap<T>): readonly T[] {
	const items = [...map.values()].sort((a, b) => (a.segment < b.segment ? -1 : 1));
	holds(items.length === map.size, "a map has another size than it says");
	for (const item of items) {
		holds(map.get(item.segment) === item, "an item is filed under another name");
	}
	if (map.ordered !== undefined) {
		const ordered = checkChunks(map.ordered, map.size, segmentBefore);
		holds(keysEqual(ordered, items), "a map has other items in order than by name");
	}
	return items;
}

function checkChunks<T>(
	chunks: Chunks<T>,
	size: number,
	before: (a: T, b: T) => boolean,
): readonly T[] {
	holds(
		chunks.every((chunk) => chunk.length > 0),
		"a sorted list has an empty chunk",
	);
	const items = chunks.flat();
	holds(items.length === size, "a sorted list has another size than it says");
	for (const [i, item] of items.slice(1).entries()) {
		// `i` counts from the item before.
		holds(before(items[i]!, item), "a sorted list is out of order");
	}
	return items;
}

function holds(condition: boolean, otherwise: string): void {
	if (!condition) {
		throw new Error(`cache invariant broken: ${otherwise}`);
	}
}

import { keysEqual } from "../key.ts";
import { EntrySet } from "./bucket.ts";
import { ChildMap, segmentBefore } from "./child-map.ts";
import { entryBefore, nameBefore, sortByName, sortEntries } from "./entry-order.ts";
import { NameMap } from "./name-map.ts";
import { Entry, homeOf, keyOf, type Node, nameOf, placesOf } from "./node.ts";
import type { Chunks } from "./sorted-list.ts";
import type { Table } from "./table.ts";
import type { Tree } from "./tree.ts";
import { nodesOf, type TypeIndex } from "./type-index.ts";

/**
 * Checks the invariants of a table: each entry is exactly where its ID and its keys require, and each tree
 * is ordered, linked and free of empty nodes.
 *
 * @throws Error that describes the broken invariant: a bug.
 */
export function validateTable(table: Table): void {
	const entries = validateTree(table.ids);
	for (const [entry, nodes] of entries) {
		holds(nodes.length === 1 && nodes[0] === homeOf(entry), "an entry is filed under another ID");
		holds(table.find(entry.resource.id ?? { name: "" }) === entry, "an entry is not found by ID");
		holds(placesOf(entry).length === table.indexes.length, "an entry has no place for each index");
	}
	const homes = new Set(Array.from(entries.keys(), homeOf));
	holds(table.tenancies === homes.size, "a tenancy has no entries");
	for (const index of table.indexes) {
		validateIndex(index, new Set(entries.keys()));
	}
}

function validateIndex(index: TypeIndex, known: ReadonlySet<Entry>): void {
	const { name } = index.definition;
	const found = validateTree(index.tree);
	for (const entry of found.keys()) {
		holds(known.has(entry), `index "${name}" has a removed entry`);
	}
	for (const entry of known) {
		const nodes = nodesOf(placesOf(entry)[index.at]);
		holds(keysEqual(nodes, found.get(entry) ?? []), `index "${name}" has an entry elsewhere`);
		const keys = index.keysOf(entry);
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

/** Checks a tree and returns its entries with their nodes, ordered by key. */
function validateTree(tree: Tree): Map<Entry, Node[]> {
	const found = new Map<Entry, Node[]>();
	const size = validateNode(tree.root, found);
	holds(size === tree.size, `a tree reports ${tree.size} entries and has ${size}`);
	return found;
}

function validateNode(node: Node, found: Map<Entry, Node[]>): number {
	const { bucket, children, parent } = node;
	holds(
		bucket !== undefined || children !== undefined || parent === undefined,
		"a node has neither entries nor children",
	);
	let size = 0;
	for (const entry of entriesOf(node)) {
		const nodes = found.get(entry) ?? [];
		found.set(entry, [...nodes, node]);
		size++;
	}
	for (const child of childrenOf(node)) {
		holds(child.parent === node, "a child belongs to another parent");
		size += validateNode(child, found);
	}
	return size;
}

/** The children of a node by segment, checked. */
function childrenOf({ children }: Node): readonly Node[] {
	if (!(children instanceof ChildMap)) {
		return children === undefined ? [] : [children];
	}
	holds(children.size > 0, "a node has an empty map of children");
	const nodes = [...children.values()].sort((a, b) => (a.segment < b.segment ? -1 : 1));
	for (const child of nodes) {
		holds(children.get(child.segment) === child, "a child is filed under another segment");
	}
	checkOrder(children.ordered, nodes, segmentBefore);
	return nodes;
}

/** The entries of a node in order, checked. */
function entriesOf({ bucket, order }: Node): readonly Entry[] {
	if (bucket === undefined || bucket instanceof Entry) {
		return bucket === undefined ? [] : [bucket];
	}
	if (Array.isArray(bucket)) {
		holds(bucket.length > 1, "an array has fewer than two entries");
		const entries = sortEntries(bucket);
		holds(order === "none" || keysEqual(entries, bucket), "an array of entries is out of order");
		return entries;
	}
	holds(bucket.size > 0, "a bucket is empty");
	const entries =
		bucket instanceof EntrySet ? sortEntries(bucket.values()) : sortByName(bucket.values());
	holds(entries.length === bucket.size, "a bucket reports a wrong size");
	if (bucket instanceof NameMap) {
		for (const entry of entries) {
			holds(bucket.get(nameOf(entry)) === entry, "an entry is filed under another name");
		}
	}
	checkOrder(bucket.ordered, entries, bucket instanceof NameMap ? nameBefore : entryBefore);
	return entries;
}

/** Checks that a sorted list, if it exists, contains exactly the items, in order. */
function checkOrder<T>(
	chunks: Chunks<T> | undefined,
	items: readonly T[],
	before: (a: T, b: T) => boolean,
): void {
	if (chunks === undefined) {
		return;
	}
	holds(
		chunks.every((chunk) => chunk.length > 0),
		"a sorted list has an empty chunk",
	);
	const listed = chunks.flat();
	holds(keysEqual(listed, items), "a sorted list has other items, or another order");
	for (const [i, item] of listed.slice(1).entries()) {
		// `i` is the index of the preceding item.
		holds(before(listed[i]!, item), "a sorted list is out of order");
	}
}

function holds(condition: boolean, problem: string): void {
	if (!condition) {
		throw new Error(`cache invariant broken: ${problem}`);
	}
}

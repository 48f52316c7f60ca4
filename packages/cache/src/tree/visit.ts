import { appendEntries, entriesInOrder, listEntries } from "./bucket.ts";
import { childrenInOrder } from "./children.ts";
import { type Entry, type Node, nameOf } from "./node.ts";
import type { Scope } from "./scope.ts";
import { seek, take } from "./seek.ts";
import type { Chunks } from "./sorted-list.ts";

/** Called with entries and their node. It must not change the tree. */
export type Visit = (entries: readonly Entry[], node: Node) => void;

/** The entries of a scope ordered by key and ID, in a new array; an entry with several keys is in it at each. */
export function listScope(scope: Scope): Entry[] {
	const { top } = scope;
	if (scope.kind === "subtree") {
		// Mostly a whole key, whose node has no descendants.
		const entries = listEntries(top);
		appendDescendants(top, entries);
		return entries;
	}
	const entries: Entry[] = [];
	visitScope(scope, (some) => {
		for (const entry of some) {
			entries.push(entry);
		}
	});
	return entries;
}

function appendDescendants(node: Node, entries: Entry[]): void {
	if (node.children !== undefined) {
		for (const children of childrenInOrder(node)) {
			for (const child of children) {
				appendEntries(child, entries);
				appendDescendants(child, entries);
			}
		}
	}
}

/** Visits the entries of a scope ordered by key and ID; an entry with several keys is visited at each. */
export function visitScope(scope: Scope, visit: Visit): void {
	const { top } = scope;
	switch (scope.kind) {
		case "subtree":
			visitSubtree(top, visit);
			break;
		case "children":
			for (const child of startingWith(childrenInOrder(top), scope.open, segmentOf)) {
				visitSubtree(child, visit);
			}
			break;
		case "entries":
			visit(startingWith(entriesInOrder(top), scope.open, nameOf), top);
			break;
	}
}

function visitSubtree(node: Node, visit: Visit): void {
	for (const entries of entriesInOrder(node)) {
		visit(entries, node);
	}
	if (node.children !== undefined) {
		for (const children of childrenInOrder(node)) {
			for (const child of children) {
				visitSubtree(child, visit);
			}
		}
	}
}

/** The items whose names begin with `open`. */
function startingWith<T>(chunks: Chunks<T>, open: string, nameOf: (item: T) => string): T[] {
	const items: T[] = [];
	const position = seek(chunks, open, nameOf);
	let item = take(chunks, position);
	while (item !== undefined && nameOf(item).startsWith(open)) {
		items.push(item);
		item = take(chunks, position);
	}
	return items;
}

/** The segment of a node. */
export function segmentOf(node: Node): string {
	return node.segment;
}

import type { Entry } from "./entry.ts";
import { childrenOf, entriesOf, type Node } from "./node.ts";
import type { Scope } from "./scope.ts";
import { seek, take } from "./seek.ts";
import type { Named } from "./segment-map.ts";
import type { Chunks } from "./sorted-list.ts";

/** Takes an entry and the node at which it was met. It must not change the tree. */
export type Visit = (entry: Entry, node: Node) => void;

/** Visits the entries of a scope by key, then by ID; one with several keys at each of them. */
export function visitScope(scope: Scope, visit: Visit): void {
	const { top } = scope;
	switch (scope.kind) {
		case "subtree":
			visitSubtree(top, visit);
			break;
		case "children":
			visitOpen(childrenOf(top), scope.open, (child) => visitSubtree(child, visit));
			break;
		case "entries":
			visitOpen(entriesOf(top), scope.open, (entry) => visit(entry, top));
			break;
	}
}

/** Visits the entries of the node's own key, by ID. */
export function visitEntries(node: Node, visit: Visit): void {
	for (const chunk of entriesOf(node)) {
		for (const entry of chunk) {
			visit(entry, node);
		}
	}
}

function visitSubtree(node: Node, visit: Visit): void {
	visitEntries(node, visit);
	for (const chunk of childrenOf(node)) {
		for (const child of chunk) {
			visitSubtree(child, visit);
		}
	}
}

function visitOpen<T extends Named>(
	chunks: Chunks<T>,
	open: string,
	visit: (item: T) => void,
): void {
	const position = seek(chunks, open);
	let item = take(chunks, position);
	while (item?.segment.startsWith(open)) {
		visit(item);
		item = take(chunks, position);
	}
}

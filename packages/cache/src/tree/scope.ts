import { isWithin, type Node, type Place } from "./node.ts";

/** The part of a tree that a reader reads. */
export type Scope =
	/** A node and its descendants. */
	| { readonly kind: "subtree"; readonly top: Node }
	/** The children of a node whose segments begin with `open`, and their descendants. */
	| { readonly kind: "children"; readonly top: Node; readonly open: string }
	/** The entries of a node whose names begin with `open`, in the tree by ID. */
	| { readonly kind: "entries"; readonly top: Node; readonly open: string };

/**
 * Whether the node is the first of an entry's nodes, by key, in the scope. A reader skips the entry at its
 * other nodes.
 */
export function isFirstPlace(node: Node, place: Place, scope: Scope): boolean {
	if (place === undefined || !("length" in place)) {
		return true;
	}
	return place.find((other) => isInScope(other, scope)) === node;
}

/**
 * Whether the node is the first of an entry's nodes, by key, on the path from the root to the node. Ancestors come
 * first in the order of keys.
 */
export function isFirstOnPath(node: Node, place: Place): boolean {
	if (place === undefined || !("length" in place)) {
		return true;
	}
	return place.find((other) => isWithin(node, other)) === node;
}

function isInScope(node: Node, scope: Scope): boolean {
	if (scope.kind === "subtree") {
		return isWithin(node, scope.top);
	}
	for (let at: Node = node; at.parent !== undefined; at = at.parent) {
		if (at.parent === scope.top) {
			return at.segment.startsWith(scope.open);
		}
	}
	return false;
}

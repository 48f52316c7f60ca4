import { isWithin, type Node, type Place } from "./node.ts";

/** The part of a tree that a reader asks for. */
export type Scope =
	/** A node and all below it. */
	| { readonly kind: "subtree"; readonly top: Node }
	/** What is right below a node, and begins with `open`, with all below that. */
	| { readonly kind: "children"; readonly top: Node; readonly open: string }
	/** The entries of a node whose names begin with `open`, in the tree by ID. */
	| { readonly kind: "entries"; readonly top: Node; readonly open: string };

/**
 * Whether the node is the one of an entry's nodes at which a reader of the scope meets it: the first
 * by key.
 */
export function isFirstPlace(node: Node, place: Place, scope: Scope): boolean {
	if (place === undefined || !("length" in place)) {
		return true;
	}
	return place.find((other) => isInScope(other, scope)) === node;
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

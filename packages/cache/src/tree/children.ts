import { ChildMap } from "./child-map.ts";
import { Node } from "./node.ts";
import type { Chunks } from "./sorted-list.ts";

/** The child of that segment, or `undefined`. */
export function findChild(parent: Node, segment: string): Node | undefined {
	const { children } = parent;
	if (children instanceof ChildMap) {
		return children.get(segment);
	}
	return children?.segment === segment ? children : undefined;
}

/** Adds a child, whose segment must not be present, to a node. */
export function addChild(parent: Node, child: Node): void {
	const { children } = parent;
	if (children instanceof ChildMap) {
		children.add(child);
	} else {
		parent.children = children === undefined ? child : new ChildMap([children, child]);
	}
}

/** Removes a child, which must be present, from a node. */
export function removeChild(parent: Node, child: Node): void {
	const { children } = parent;
	if (children instanceof ChildMap && children.size > 1) {
		children.remove(child);
	} else {
		parent.children = undefined;
	}
}

/** The children ordered by segment, valid until the next change. */
export function childrenInOrder({ children }: Node): Chunks<Node> {
	if (children === undefined) {
		return [];
	}
	return children instanceof Node ? [[children]] : children.inOrder().chunks;
}

/** Like `childrenInOrder`, but never changes. */
export function shareChildren(parent: Node): Chunks<Node> {
	return parent.children instanceof ChildMap
		? parent.children.inOrder().share()
		: childrenInOrder(parent);
}

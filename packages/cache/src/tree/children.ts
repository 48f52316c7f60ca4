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

/** Gives a node a child whose segment is free. */
export function addChild(parent: Node, child: Node): void {
	const { children } = parent;
	if (children instanceof ChildMap) {
		children.add(child);
	} else {
		parent.children = children === undefined ? child : new ChildMap([children, child]);
	}
}

/** Takes from a node a child that it has. */
export function removeChild(parent: Node, child: Node): void {
	const { children } = parent;
	if (children instanceof ChildMap && children.size > 1) {
		children.remove(child);
	} else {
		parent.children = undefined;
	}
}

/** The children by segment, to be read before the next change. */
export function childrenInOrder({ children }: Node): Chunks<Node> {
	if (children === undefined) {
		return [];
	}
	return children instanceof Node ? [[children]] : children.inOrder().chunks;
}

/** As `childrenInOrder`, to be kept. */
export function shareChildren(parent: Node): Chunks<Node> {
	return parent.children instanceof ChildMap
		? parent.children.inOrder().share()
		: childrenInOrder(parent);
}

import { Node } from "./node.ts";
import { type Chunks, SortedList } from "./sorted-list.ts";

/**
 * The nodes right below one: none; a single one, which is found by comparing; or several, by hash.
 */
export type Children = undefined | Node | ChildMap;

/** Several nodes with the same parent: found by hash, and in order for those who ask. */
export class ChildMap {
	readonly #bySegment: Map<string, Node>;
	/** From when somebody first wants them in order, for as long as there are any. */
	#ordered: SortedList<Node> | undefined;

	constructor(children: readonly Node[]) {
		this.#bySegment = new Map(children.map((child) => [child.segment, child]));
	}

	get size(): number {
		return this.#bySegment.size;
	}

	get(segment: string): Node | undefined {
		return this.#bySegment.get(segment);
	}

	/** Adds a node whose segment is free. */
	add(child: Node): void {
		this.#bySegment.set(child.segment, child);
		this.#ordered?.add(child);
	}

	/** Removes a node that is there. */
	remove(child: Node): void {
		this.#ordered?.remove(child);
		this.#bySegment.delete(child.segment);
	}

	/** In no order. */
	values(): Iterable<Node> {
		return this.#bySegment.values();
	}

	inOrder(): SortedList<Node> {
		this.#ordered ??= new SortedList(
			segmentBefore,
			[...this.#bySegment.values()].sort((a, b) => (a.segment < b.segment ? -1 : 1)),
		);
		return this.#ordered;
	}

	/** The nodes in order, if somebody has wanted them so. */
	get ordered(): Chunks<Node> | undefined {
		return this.#ordered?.chunks;
	}
}

/** Whether a node's segment is below another's. */
export function segmentBefore(a: Node, b: Node): boolean {
	return a.segment < b.segment;
}

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

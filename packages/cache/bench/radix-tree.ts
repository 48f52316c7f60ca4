/** A node of a radix tree: what follows the parent's prefix, and the children by first character. */
interface RadixNode<T> {
	prefix: string;
	item: T | undefined;
	readonly children: Map<number, RadixNode<T>>;
}

/** A mutable radix tree over the characters of strings, with as much as a comparison needs. */
export class RadixTree<T> {
	readonly #root: RadixNode<T> = { prefix: "", item: undefined, children: new Map() };

	get(key: string): T | undefined {
		let node: RadixNode<T> | undefined = this.#root;
		let at = 0;
		while (node !== undefined && key.startsWith(node.prefix, at)) {
			at += node.prefix.length;
			if (at === key.length) {
				return node.item;
			}
			node = node.children.get(key.charCodeAt(at));
		}
		return undefined;
	}

	set(key: string, item: T): void {
		let node = this.#root;
		let at = 0;
		for (;;) {
			const first = key.charCodeAt(at);
			const child = node.children.get(first);
			if (child === undefined) {
				node.children.set(first, { prefix: key.slice(at), item, children: new Map() });
				return;
			}
			const shared = sharedLength(child.prefix, key, at);
			if (shared < child.prefix.length) {
				split(child, shared);
			}
			at += shared;
			node = child;
			if (at === key.length) {
				node.item = item;
				return;
			}
		}
	}
}

function sharedLength(prefix: string, key: string, at: number): number {
	let length = 0;
	while (length < prefix.length && prefix.charCodeAt(length) === key.charCodeAt(at + length)) {
		length++;
	}
	return length;
}

/** Cuts a node in two: what is after `length` becomes its only child. */
function split<T>(node: RadixNode<T>, length: number): void {
	const rest: RadixNode<T> = {
		prefix: node.prefix.slice(length),
		item: node.item,
		children: new Map(node.children),
	};
	node.prefix = node.prefix.slice(0, length);
	node.item = undefined;
	node.children.clear();
	node.children.set(rest.prefix.charCodeAt(0), rest);
}

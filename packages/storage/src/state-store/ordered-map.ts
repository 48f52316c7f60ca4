/**
 * An ordered map with string keys whose snapshots cost nothing: a B+tree that copies a page before
 * writing to it if a snapshot may refer to that page.
 *
 * ```
 *                branch  [ "f"        "m"       ]        separators: the smallest key that the
 *                        /      |          \             child to the right may hold
 *        leaf [a b c d e]  [f g h k]   [m n q t z]
 * ```
 *
 * Every page has the epoch in which it was created. Taking a snapshot returns the root and starts a new
 * epoch; a write copies the pages of older epochs on its path and changes the others in place. So a
 * snapshot costs one object, the first write after it copies one page per level, and unused pages are
 * left to the garbage collector.
 *
 * All leaves have the same depth. Full pages are split, and a small page is merged with a neighbor if both
 * fit into one page. Pages are never rebalanced otherwise: the neighbor of a small page that can't be
 * merged is at least half full itself.
 */
export class OrderedMap<V> {
	readonly #pageDied: PageDied | undefined;
	#root: Page<V> = { leaf: true, epoch: 0, keys: [], values: [] };
	#epoch = 0;
	#size = 0;
	/** No key of the map is greater. */
	#bound = "";

	/** @param pageDied Called with each page that only snapshots still use. */
	constructor(pageDied?: PageDied) {
		this.#pageDied = pageDied;
	}

	/** The number of entries. */
	get size(): number {
		return this.#size;
	}

	/** Sets the value of a key, and returns the replaced value. */
	set(key: string, value: V): V | undefined {
		const root = this.#writable(this.#root);
		this.#root = root;
		const isLast = key > this.#bound;
		const replaced = isLast ? this.#append(root, key, value) : this.#insert(root, key, value);
		if (isLast) {
			this.#bound = key;
		}
		if (count(root) > pageSize) {
			const right = this.#split(root, isLast);
			this.#root = {
				leaf: false,
				epoch: this.#epoch,
				keys: [right.separator],
				children: [root, right.page],
			};
		}
		if (replaced === undefined) {
			this.#size += 1;
		}
		return replaced;
	}

	/** Removes a key, and returns its value. */
	delete(key: string): V | undefined {
		// Looked up first, so that no page is copied if there is nothing to remove.
		const removed = lookup(this.#root, key);
		if (removed === undefined) {
			return undefined;
		}
		const root = this.#writable(this.#root);
		this.#remove(root, key);
		this.#size -= 1;
		this.#root = this.#lowered(root);
		return removed;
	}

	/** All values, in the order of their keys. */
	values(): V[] {
		const values: V[] = [];
		appendValues(this.#root, values);
		return values;
	}

	/** At most `limit` values of keys greater than `after`, in the order of their keys. Takes no snapshot. */
	valuesAfter(after: string, limit: number): V[] {
		const values: V[] = [];
		for (const value of new OrderedSnapshot(this.#root, this.#size, this.#epoch).scan("", after)) {
			if (values.length === limit) {
				break;
			}
			values.push(value);
		}
		return values;
	}

	/** An immutable snapshot of the map. */
	snapshot(): OrderedSnapshot<V> {
		const epoch = this.#epoch;
		this.#epoch += 1;
		return new OrderedSnapshot(this.#root, this.#size, epoch);
	}

	#writable<P extends Page<V>>(page: P): P {
		if (page.epoch === this.#epoch) {
			return page;
		}
		this.#pageDied?.(page.epoch, bytesOf(page));
		return copy(page, this.#epoch);
	}

	#writableChild(branch: Branch<V>, index: number): Page<V> {
		const child = this.#writable(at(branch.children, index));
		branch.children[index] = child;
		return child;
	}

	/** Adds an entry whose key is greater than all others. */
	#append(page: Page<V>, key: string, value: V): undefined {
		if (page.leaf) {
			page.keys.push(key);
			page.values.push(value);
			return;
		}
		const index = page.children.length - 1;
		const child = this.#writableChild(page, index);
		this.#append(child, key, value);
		if (count(child) > pageSize) {
			const right = this.#split(child, true);
			page.keys.push(right.separator);
			page.children.push(right.page);
		}
	}

	#insert(page: Page<V>, key: string, value: V): V | undefined {
		if (page.leaf) {
			const index = firstNotBelow(page.keys, key);
			if (page.keys[index] === key) {
				const replaced = page.values[index];
				page.values[index] = value;
				return replaced;
			}
			page.keys.splice(index, 0, key);
			page.values.splice(index, 0, value);
			return undefined;
		}
		const index = childFor(page, key);
		const child = this.#writableChild(page, index);
		const replaced = this.#insert(child, key, value);
		if (count(child) > pageSize) {
			const right = this.#split(child, false);
			page.keys.splice(index, 0, right.separator);
			page.children.splice(index + 1, 0, right.page);
		}
		return replaced;
	}

	/** Moves the upper entries of a page, which is writable, to a new one. */
	#split(
		page: Page<V>,
		hasGrownAtEnd: boolean,
	): { readonly separator: string; readonly page: Page<V> } {
		// Halves leave both room to grow. Keys that arrive in order, as in a load, only grow the last page.
		const middle = hasGrownAtEnd ? filledPage : count(page) >> 1;
		if (page.leaf) {
			const keys = page.keys.splice(middle);
			const values = page.values.splice(middle);
			return {
				separator: at(keys, 0),
				page: { leaf: true, epoch: this.#epoch, keys, values },
			};
		}
		const children = page.children.splice(middle);
		const keys = page.keys.splice(middle);
		const separator = at(page.keys, middle - 1);
		page.keys.pop();
		return { separator, page: { leaf: false, epoch: this.#epoch, keys, children } };
	}

	#remove(page: Page<V>, key: string): void {
		if (page.leaf) {
			const index = firstNotBelow(page.keys, key);
			page.keys.splice(index, 1);
			page.values.splice(index, 1);
			return;
		}
		const index = childFor(page, key);
		const child = this.#writableChild(page, index);
		this.#remove(child, key);
		if (count(child) < smallPage) {
			this.#shrink(page, index);
		}
	}

	/** The root without the top levels that no longer branch. */
	#lowered(root: Page<V>): Page<V> {
		let page = root;
		while (!page.leaf && page.children.length < 2) {
			page = page.children[0] ?? { leaf: true, epoch: this.#epoch, keys: [], values: [] };
		}
		return page;
	}

	/** Merges a small child with a neighbor, or drops it if it is empty. */
	#shrink(branch: Branch<V>, index: number): void {
		const size = count(at(branch.children, index));
		if (size === 0) {
			branch.children.splice(index, 1);
			branch.keys.splice(Math.max(0, index - 1), 1);
		} else if (index > 0 && size + count(at(branch.children, index - 1)) <= filledPage) {
			this.#merge(branch, index - 1);
		} else if (
			index + 1 < branch.children.length &&
			size + count(at(branch.children, index + 1)) <= filledPage
		) {
			this.#merge(branch, index);
		}
	}

	/** Appends the child to the right of `index` to the one at `index`. */
	#merge(branch: Branch<V>, index: number): void {
		const left = this.#writableChild(branch, index);
		const right = at(branch.children, index + 1);
		const separator = at(branch.keys, index);
		if (left.leaf && right.leaf) {
			left.keys.push(...right.keys);
			left.values.push(...right.values);
		} else if (!left.leaf && !right.leaf) {
			left.keys.push(separator, ...right.keys);
			left.children.push(...right.children);
		}
		if (right.epoch !== this.#epoch) {
			this.#pageDied?.(right.epoch, bytesOf(right));
		}
		branch.children.splice(index + 1, 1);
		branch.keys.splice(index, 1);
	}
}

/** The content of an ordered map at one moment. */
export class OrderedSnapshot<V> {
	readonly #root: Page<V>;
	/** The number of entries. */
	readonly size: number;
	/** The newest epoch of the pages that it uses. */
	readonly epoch: number;

	/** Made by `OrderedMap.snapshot`. */
	constructor(root: Page<V>, size: number, epoch: number) {
		this.#root = root;
		this.size = size;
		this.epoch = epoch;
	}

	/** All pages that it uses, each with its size, for checking accounts against. */
	pages(): ReadonlyMap<object, number> {
		const found = new Map<object, number>();
		const visit = (page: Page<V>): void => {
			found.set(page, bytesOf(page));
			if (!page.leaf) {
				page.children.forEach(visit);
			}
		};
		visit(this.#root);
		return found;
	}

	/**
	 * The values of all keys that begin with `prefix`, in the order of the keys; with `after`, only
	 * those of greater keys; with `end`, only those of smaller ones. Lazy: reads only what is consumed.
	 */
	*scan(prefix: string, after?: string, end?: string): Generator<V, void, undefined> {
		const start = after !== undefined && after >= prefix ? after : prefix;
		const above: BranchesAbove<V> = [];
		let page = this.#descend(start, above);
		let index = firstNotBelow(page.keys, start);
		if (after !== undefined && page.keys[index] === after) {
			index += 1;
		}
		for (;;) {
			const { keys, values } = page;
			for (; index < keys.length; index++) {
				const key = at(keys, index);
				if (!key.startsWith(prefix) || (end !== undefined && key >= end)) {
					return;
				}
				yield at(values, index);
			}
			const leaf = nextLeaf(above);
			if (leaf === undefined) {
				return;
			}
			page = leaf;
			index = 0;
		}
	}

	/**
	 * Visits keys in order, beginning with the first one that is not below `start`, and yields for each visited key
	 * its value, or `undefined` if it was skipped. What lies between a key and the one to skip to is not visited.
	 * Lazy: reads only what is consumed.
	 */
	*visit(
		start: string,
		step: (key: string) => VisitStep,
	): Generator<V | undefined, void, undefined> {
		let above: BranchesAbove<V> = [];
		let page = this.#descend(start, above);
		let index = firstNotBelow(page.keys, start);
		for (;;) {
			const key = page.keys[index];
			if (key === undefined) {
				const leaf = nextLeaf(above);
				if (leaf === undefined) {
					return;
				}
				page = leaf;
				index = 0;
				continue;
			}
			const next = step(key);
			if (next === "end") {
				return;
			}
			if (next === "take") {
				yield at(page.values, index);
				index += 1;
				continue;
			}
			yield undefined;
			if (next.skipTo > at(page.keys, page.keys.length - 1)) {
				above = [];
				page = this.#descend(next.skipTo, above);
			}
			index = firstNotBelow(page.keys, next.skipTo);
		}
	}

	/** The leaf that holds the key, if any does, and the branches above it. */
	#descend(key: string, above: BranchesAbove<V>): Leaf<V> {
		let page = this.#root;
		while (!page.leaf) {
			const index = childFor(page, key);
			above.push({ branch: page, next: index + 1 });
			page = at(page.children, index);
		}
		return page;
	}
}

/** The branches above a leaf, each with the index of the child to visit next. */
type BranchesAbove<V> = { readonly branch: Branch<V>; next: number }[];

/**
 * What a visit does at a key: take its value, skip to a greater key, or end, because no greater key is wanted.
 */
export type VisitStep = "take" | "end" | { readonly skipTo: string };

/** The maximum of keys of a leaf and of children of a branch. */
const pageSize = 64;
/** A page with fewer is merged if possible. */
const smallPage = 16;
/** The maximum of a merged page, and the size of one that was filled in order: the next insertions do not split it. */
const filledPage = 48;

/** Reports that a page left the map; only snapshots of its epoch or a later one still use it. */
export type PageDied = (epoch: number, bytes: number) => void;

/** The memory of a page besides its entries: an object and two arrays. */
const pageOverheadBytes = 120;
const referenceBytes = 8;

interface Leaf<V> {
	readonly leaf: true;
	readonly epoch: number;
	readonly keys: string[];
	readonly values: V[];
}

interface Branch<V> {
	readonly leaf: false;
	readonly epoch: number;
	/** One fewer than children. */
	readonly keys: string[];
	readonly children: Page<V>[];
}

type Page<V> = Leaf<V> | Branch<V>;

function copy<V, P extends Page<V>>(page: P, epoch: number): P;
function copy<V>(page: Page<V>, epoch: number): Page<V> {
	return page.leaf
		? { leaf: true, epoch, keys: page.keys.slice(), values: page.values.slice() }
		: { leaf: false, epoch, keys: page.keys.slice(), children: page.children.slice() };
}

function count(page: Page<unknown>): number {
	return page.leaf ? page.keys.length : page.children.length;
}

/** Estimates the memory of a page, without its keys and values. */
function bytesOf(page: Page<unknown>): number {
	return pageOverheadBytes + count(page) * 2 * referenceBytes;
}

function lookup<V>(root: Page<V>, key: string): V | undefined {
	let page = root;
	while (!page.leaf) {
		page = at(page.children, childFor(page, key));
	}
	const index = firstNotBelow(page.keys, key);
	return page.keys[index] === key ? page.values[index] : undefined;
}

function appendValues<V>(page: Page<V>, values: V[]): void {
	if (page.leaf) {
		for (const value of page.values) {
			values.push(value);
		}
	} else {
		for (const child of page.children) {
			appendValues(child, values);
		}
	}
}

function nextLeaf<V>(above: BranchesAbove<V>): Leaf<V> | undefined {
	for (let top = above.at(-1); top !== undefined; top = above.at(-1)) {
		const child = top.branch.children[top.next];
		if (child === undefined) {
			above.pop();
			continue;
		}
		top.next += 1;
		if (child.leaf) {
			return child;
		}
		above.push({ branch: child, next: 0 });
	}
	return undefined;
}

/** The index of the first key that is not below `key`. */
function firstNotBelow(keys: readonly string[], key: string): number {
	let low = 0;
	let high = keys.length;
	while (low < high) {
		const middle = (low + high) >>> 1;
		if (at(keys, middle) < key) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low;
}

/** The index of the child that holds `key`: separators belong to the child on their right. */
function childFor(branch: Branch<unknown>, key: string): number {
	const { keys } = branch;
	let low = 0;
	let high = keys.length;
	while (low < high) {
		const middle = (low + high) >>> 1;
		if (key < at(keys, middle)) {
			high = middle;
		} else {
			low = middle + 1;
		}
	}
	return low;
}

/** An element whose index is in range by the structure of the tree. */
function at<T>(items: readonly T[], index: number): T {
	return items[index] as T;
}

import { type Decoded, DecodeError } from "@plinth/resource";
import type { OnUndecodable } from "../cache.ts";
import { describe, IndexError, reason } from "../cache-error.ts";
import type { AnyIndex } from "../index-definition.ts";
import { compareKeys, isKey, isKeyQuery, isOpen, type Key, type KeyQuery } from "../key.ts";
import { type Entry, isAt, type Node, type Place } from "./node.ts";
import type { Scope } from "./scope.ts";
import { Tree } from "./tree.ts";

/** One declared index of a cache: its definition and its tree. */
export class TypeIndex {
	readonly definition: AnyIndex;
	/** Which of an entry's places is this index's. */
	readonly at: number;
	readonly tree = new Tree("by-id");
	/** Whether an entry has ever had several keys: only then may a reader meet one twice. */
	hasSeveralKeys = false;

	readonly #onUndecodable: OnUndecodable | undefined;

	constructor(definition: AnyIndex, at: number, onUndecodable: OnUndecodable | undefined) {
		this.definition = definition;
		this.at = at;
		this.#onUndecodable = onUndecodable;
	}

	/**
	 * The keys of a resource, in order, each once.
	 *
	 * @throws IndexError where the indexer fails or answers no keys, or a required one is missing.
	 */
	keysOf(item: Decoded): readonly Key[] {
		const { definition } = this;
		let keys: readonly Key[];
		try {
			keys = definition.keys(item);
		} catch (cause) {
			if (cause instanceof DecodeError && this.#onUndecodable !== undefined) {
				this.#onUndecodable(definition.type, item.resource, cause);
				return [];
			}
			throw this.#error(`failed on ${describe(item.resource.id)}: ${reason(cause)}`, { cause });
		}
		if (!Array.isArray(keys) || !keys.every(isKey)) {
			throw this.#error(`keys of ${describe(item.resource.id)} are no array of arrays of strings`);
		}
		if (keys.length === 0 && definition.required) {
			throw this.#error(`is required, but ${describe(item.resource.id)} has no key`);
		}
		return keys.length > 1 ? sortedOnce(keys) : keys;
	}

	/**
	 * The key that a reader's arguments mean.
	 *
	 * @throws IndexError where the key function fails or answers no key.
	 */
	query(args: readonly unknown[]): KeyQuery {
		let key: KeyQuery;
		try {
			key = this.definition.key(...args);
		} catch (cause) {
			throw this.#error(`bad argument: ${reason(cause)}`, { cause });
		}
		if (!isKeyQuery(key)) {
			throw this.#error("bad argument: its key is no array of strings");
		}
		return key;
	}

	/**
	 * As `query`, for readers that need a whole key.
	 *
	 * @throws IndexError also where the key is the beginning of one.
	 */
	exactQuery(args: readonly unknown[]): Key {
		const key = this.query(args);
		if (isOpen(key)) {
			throw this.#error("bad argument: a prefix of a segment, where a key is needed");
		}
		return key;
	}

	/** The part of the tree that the arguments mean, or `undefined` where there is nothing. */
	scope(args: readonly unknown[]): Scope | undefined {
		const query = this.query(args);
		const { segments, open } = isOpen(query) ? query : { segments: query, open: "" };
		const top = this.tree.find(segments);
		if (top === undefined) {
			return undefined;
		}
		return open === "" ? { kind: "subtree", top } : { kind: "children", top, open };
	}

	/** Puts an entry under its keys, and answers where that is. Fails in no case. */
	add(entry: Entry, keys: readonly Key[]): Place {
		const [first] = keys;
		if (first === undefined) {
			return undefined;
		}
		if (keys.length > 1) {
			this.hasSeveralKeys = true;
			return keys.map((key) => this.#addAt(this.tree.ensure(key), entry));
		}
		return this.#addAt(this.tree.ensure(first), entry);
	}

	#addAt(node: Node, entry: Entry): Node {
		this.tree.add(node, entry);
		return node;
	}

	/** Takes an entry from its place. Fails in no case. */
	remove(entry: Entry, from: Place): void {
		for (const node of nodesOf(from)) {
			this.tree.remove(node, entry);
		}
	}

	/**
	 * Takes a version from its place and puts the next one under its keys, and answers where that is:
	 * `from` itself where they are the same. Fails in no case.
	 */
	replace(before: Entry, from: Place, entry: Entry, keys: readonly Key[]): Place {
		const nodes = nodesOf(from);
		if (nodes.length === keys.length && nodes.every((node, i) => isAt(node, keys[i] ?? []))) {
			for (const node of nodes) {
				this.tree.replace(node, before, entry);
			}
			return from;
		}
		this.remove(before, from);
		return this.add(entry, keys);
	}

	#error(why: string, options?: ErrorOptions): IndexError {
		return new IndexError(this.definition, why, options);
	}
}

/** The nodes of a place. */
export function nodesOf(place: Place): readonly Node[] {
	if (place === undefined) {
		return [];
	}
	return "length" in place ? place : [place];
}

function sortedOnce(keys: readonly Key[]): readonly Key[] {
	const sorted = keys.toSorted(compareKeys);
	return sorted.filter((key, i) => {
		const before = sorted[i - 1];
		return before === undefined || compareKeys(before, key) !== 0;
	});
}

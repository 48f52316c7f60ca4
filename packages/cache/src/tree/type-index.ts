import { type Decoded, DecodeError } from "@plinth/resource";
import type { UndecodableListener } from "../cache.ts";
import { describe, IndexError, reason } from "../cache-error.ts";
import type { AnyIndex } from "../index-definition.ts";
import { compareKeys, isKey, isKeyPrefix, isKeyQuery, type Key, type KeyQuery } from "../key.ts";
import { type Entry, isAt, type Node, type Place } from "./node.ts";
import type { Scope } from "./scope.ts";
import { Tree } from "./tree.ts";

/** One declared index of a cache: its definition and its tree. */
export class TypeIndex {
	readonly definition: AnyIndex;
	/** The position of this index in an entry's places. */
	readonly at: number;
	readonly tree = new Tree("by-id");
	/** Whether an entry has ever had several keys: only then can a reader encounter duplicates. */
	hasSeveralKeys = false;

	readonly #onUndecodable: UndecodableListener | undefined;

	constructor(definition: AnyIndex, at: number, onUndecodable: UndecodableListener | undefined) {
		this.definition = definition;
		this.at = at;
		this.#onUndecodable = onUndecodable;
	}

	/**
	 * The keys of a resource, in order, without duplicates.
	 *
	 * @throws IndexError if the indexer fails or does not return keys, or a required key is missing.
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
			throw this.#error(
				`keys of ${describe(item.resource.id)} are not an array of arrays of strings`,
			);
		}
		if (keys.length === 0 && definition.required) {
			throw this.#error(`is required, but ${describe(item.resource.id)} has no key`);
		}
		return keys.length > 1 ? sortedOnce(keys) : keys;
	}

	/**
	 * The key for a reader's arguments.
	 *
	 * @throws IndexError if the key function fails or does not return a key.
	 */
	query(args: readonly unknown[]): KeyQuery {
		let key: KeyQuery;
		try {
			key = this.definition.key(...args);
		} catch (cause) {
			throw this.#error(`bad argument: ${reason(cause)}`, { cause });
		}
		if (!isKeyQuery(key)) {
			throw this.#error("bad argument: its key is not an array of strings");
		}
		return key;
	}

	/**
	 * Like `query`, for readers that need a complete key.
	 *
	 * @throws IndexError also if the key is open.
	 */
	exactQuery(args: readonly unknown[]): Key {
		const key = this.query(args);
		if (isKeyPrefix(key)) {
			throw this.#error("bad argument: expected a key, got a prefix of a segment");
		}
		return key;
	}

	/** The part of the tree that the arguments match; `undefined` if there is none. */
	scope(args: readonly unknown[]): Scope | undefined {
		const query = this.query(args);
		const { segments, segmentPrefix } = isKeyPrefix(query)
			? query
			: { segments: query, segmentPrefix: "" };
		const top = this.tree.find(segments);
		if (top === undefined) {
			return undefined;
		}
		return segmentPrefix === ""
			? { kind: "subtree", top }
			: { kind: "children", top, open: segmentPrefix };
	}

	/** Adds an entry under its keys and returns its place. Never fails. */
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

	/** Removes an entry from its place. Never fails. */
	remove(entry: Entry, from: Place): void {
		for (const node of nodesOf(from)) {
			this.tree.remove(node, entry);
		}
	}

	/**
	 * Replaces a version by the next one, and returns the place of that one: `from` if the keys are the same.
	 * Never fails.
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

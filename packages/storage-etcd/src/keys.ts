import { familyKey, type ResourceName } from "@plinth/resource";

/** Parts the keys of resources. It sorts before every character that a part may hold. */
const separator = "\0";

/** Where the parts of a resource's name are in its key. */
export interface KeyParts extends ResourceName {
	readonly type: { readonly group: string; readonly groupVersion: string; readonly kind: string };
	readonly tenancy: { readonly partition: string; readonly namespace: string };
}

/** A range of keys. */
export interface KeyRange {
	readonly key: Uint8Array;
	/** The first key behind it. */
	readonly rangeEnd: Uint8Array;
}

/**
 * The keys of one cluster of servers.
 *
 * ```
 *   <prefix>/commits/<slot>                                           the transaction that last used the slot
 *   <prefix>/elections/<lease>                                        who holds a lease
 *   <prefix>/head                                                     put by every transaction
 *   <prefix>/identity                                                 which incarnation of the store this is
 *   <prefix>/resources/<group>.<kind>␀<partition>␀<namespace>␀<name>  a resource
 * ```
 *
 * Keys of resources order as the state store does. The head, the identity and the resources are
 * neighbours, so that one watch delivers them. The commits and the elections are not in it.
 */
export class Keys {
	readonly head: Uint8Array;
	readonly identity: Uint8Array;
	/** The head, the identity and all resources. */
	readonly watched: KeyRange;
	/** All resources. */
	readonly resources: KeyRange;
	readonly #prefix: string;
	readonly #resourcePrefix: string;

	constructor(prefix: string) {
		this.#prefix = prefix;
		this.#resourcePrefix = `${prefix}/resources/`;
		this.head = Buffer.from(`${prefix}/head`);
		this.identity = Buffer.from(`${prefix}/identity`);
		// "0" comes after "/".
		const end = Buffer.from(`${prefix}/resources0`);
		this.watched = { key: this.head, rangeEnd: end };
		this.resources = { key: Buffer.from(this.#resourcePrefix), rangeEnd: end };
	}

	/** The key of the resource of that name. */
	resource(id: ResourceName): string {
		const family = id.type === undefined ? "" : familyKey(id.type);
		const { partition = "", namespace = "" } = id.tenancy ?? {};
		return this.#resourcePrefix + [family, partition, namespace, id.name].join(separator);
	}

	/** The name whose key that is, or `undefined` if it is none of a resource. */
	parse(key: string): KeyParts | undefined {
		const parts = key.startsWith(this.#resourcePrefix)
			? key.slice(this.#resourcePrefix.length).split(separator)
			: [];
		const [family, partition, namespace, name] = parts;
		const dot = family?.lastIndexOf(".") ?? -1;
		if (
			parts.length !== 4 ||
			family === undefined ||
			partition === undefined ||
			namespace === undefined ||
			!name ||
			dot < 0
		) {
			return undefined;
		}
		const type = { group: family.slice(0, dot), groupVersion: "", kind: family.slice(dot + 1) };
		return { type, tenancy: { partition, namespace }, name };
	}

	/** The key that keeps the token of a transaction, until another one uses the slot. */
	commit(slot: number): Uint8Array {
		return Buffer.from(`${this.#prefix}/commits/${slot}`);
	}

	/** The key that the holder of a lease owns. */
	lease(name: string): Uint8Array {
		return Buffer.from(`${this.#prefix}/elections/${name}`);
	}
}

/** A key as text. */
export function keyText(key: Uint8Array): string {
	return Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString();
}

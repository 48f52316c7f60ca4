import { familyKey, type ResourceName } from "@plinth/resource";

/** Separates the parts of a resource key. It sorts before every character that a part may contain. */
const separator = "\0";

/** The parts of a resource name in a key. */
export interface KeyParts extends ResourceName {
	readonly type: { readonly group: string; readonly groupVersion: string; readonly kind: string };
	readonly tenancy: { readonly partition: string; readonly namespace: string };
}

/** Begins the part with the region of a copy. It sorts behind every character of a partition. */
const copyMark = "~";

/** A range of keys. */
export interface KeyRange {
	readonly key: Uint8Array;
	/** The first key after it. */
	readonly rangeEnd: Uint8Array;
}

/** A range of keys that is read in pages. */
export interface PagedRange extends KeyRange {
	/**
	 * The first key after the group of a key. Values of one group mostly have similar sizes, so that its pages may have more
	 * keys. `undefined` if the key belongs to none.
	 */
	groupEnd(key: Uint8Array): Uint8Array | undefined;
}

/**
 * The keys of one cluster of servers.
 *
 * ```
 *   <prefix>/commits/<slot>                                           the last transaction that used the slot
 *   <prefix>/elections/<lease>                                        the holder of a lease
 *   <prefix>/events/<event key>                                       a row of events
 *   <prefix>/head                                                     written by every transaction
 *   <prefix>/identity                                                 the incarnation of the store
 *   <prefix>/resources/<group>.<kind>␀<partition>␀<namespace>␀<name>  a resource
 *   <prefix>/resources/<group>.<kind>␀~<region>␀<partition>␀<namespace>␀<name>  a copy of another region
 *   <prefix>/servers/<id>                                             a live server of the cluster
 * ```
 *
 * Keys of resources sort like the state store. The head, the identity and the resources are adjacent, so
 * that one watch delivers them, without the commits, the elections and the events, which sort before them, and the servers,
 * which sort after them.
 */
export class Keys {
	/** What all keys begin with, before a slash. */
	readonly prefix: string;
	readonly head: Uint8Array;
	readonly identity: Uint8Array;
	/** The head, the identity and all resources. */
	readonly watched: KeyRange;
	/** All resources, grouped by type. */
	readonly resources: PagedRange;
	/** All rows of events, which are one group. */
	readonly events: PagedRange;
	/** All servers. */
	readonly servers: KeyRange;
	readonly #resourcePrefix: string;

	constructor(prefix: string) {
		this.prefix = prefix;
		this.#resourcePrefix = `${prefix}/resources/`;
		this.head = Buffer.from(`${prefix}/head`);
		this.identity = Buffer.from(`${prefix}/identity`);
		// "0" comes after "/".
		const end = Buffer.from(`${prefix}/resources0`);
		this.watched = { key: this.head, rangeEnd: end };
		this.resources = { key: Buffer.from(this.#resourcePrefix), rangeEnd: end, groupEnd: familyEnd };
		const eventsEnd = Buffer.from(`${prefix}/events0`);
		this.events = { key: this.event(""), rangeEnd: eventsEnd, groupEnd: () => eventsEnd };
		this.servers = { key: this.server(""), rangeEnd: Buffer.from(`${prefix}/servers0`) };
	}

	/** The key of the resource of that name. */
	resource(id: ResourceName): string {
		const family = id.type === undefined ? "" : familyKey(id.type);
		const { partition = "", namespace = "" } = id.tenancy ?? {};
		const place = id.region ? [family, copyMark + id.region] : [family];
		return this.#resourcePrefix + [...place, partition, namespace, id.name].join(separator);
	}

	/** The name of the resource with that key; `undefined` if it is not a resource key. */
	parse(key: string): KeyParts | undefined {
		const parts = key.startsWith(this.#resourcePrefix)
			? key.slice(this.#resourcePrefix.length).split(separator)
			: [];
		const region = parts[1]?.startsWith(copyMark) ? parts.splice(1, 1)[0]?.slice(1) : undefined;
		const [family, partition, namespace, name] = parts;
		const dot = family?.lastIndexOf(".") ?? -1;
		if (
			parts.length !== 4 ||
			family === undefined ||
			partition === undefined ||
			namespace === undefined ||
			!name ||
			region === "" ||
			dot < 0
		) {
			return undefined;
		}
		const type = { group: family.slice(0, dot), groupVersion: "", kind: family.slice(dot + 1) };
		return { type, tenancy: { partition, namespace }, name, ...(region && { region }) };
	}

	/** Whether a key is below the resources, as those of resources are. */
	isBelowResources(key: string): boolean {
		return key.startsWith(this.#resourcePrefix);
	}

	/** The key that keeps the token of a transaction until another one uses the slot. */
	commit(slot: number): Uint8Array {
		return Buffer.from(`${this.prefix}/commits/${slot}`);
	}

	/** The key of a row of events. */
	event(key: string): Uint8Array {
		return Buffer.from(`${this.prefix}/events/${key}`);
	}

	/** The event key of the row with that key. */
	eventKey(key: Uint8Array): string {
		return keyText(key).slice(`${this.prefix}/events/`.length);
	}

	/** The key under which a server records itself. */
	server(id: string): Uint8Array {
		return Buffer.from(`${this.prefix}/servers/${id}`);
	}

	/** The key that the holder of a lease creates. */
	lease(name: string): Uint8Array {
		return Buffer.from(`${this.prefix}/elections/${name}`);
	}

	/** The keys of the held leases whose names begin with `prefix`; of all if that is empty. */
	leases(prefix: string): KeyRange {
		const key = this.lease(prefix);
		const rangeEnd = Uint8Array.from(key);
		// No byte of UTF-8 is 255.
		rangeEnd[rangeEnd.length - 1] = (rangeEnd.at(-1) ?? 0) + 1;
		return { key, rangeEnd };
	}

	/** The name of the lease with that key. */
	leaseName(key: Uint8Array): string {
		return keyText(key).slice(`${this.prefix}/elections/`.length);
	}
}

/** The first key after those of the same type; `undefined` if the key is not that of a resource. */
function familyEnd(key: Uint8Array): Uint8Array | undefined {
	const at = key.indexOf(0);
	// The separator is 0.
	return at < 0 ? undefined : Buffer.concat([key.subarray(0, at), Buffer.of(1)]);
}

/** A key as text. */
export function keyText(key: Uint8Array): string {
	return Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString();
}

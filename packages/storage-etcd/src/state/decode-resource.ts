import { fromBinary } from "@bufbuild/protobuf";
import { type ID, type Resource, ResourceSchema, type Tenancy, type Type } from "@plinth/proto";
import { freezeInDevelopment, gvkKey } from "@plinth/resource";
import type { KeyValue } from "../gen/mvccpb/kv_pb.ts";
import { type Keys, keyText } from "../keys.ts";
import type { VersionOffset } from "./version-offset.ts";

/** A key under the prefix has a value that no Plinth server has written. */
export class UnrecognizedData extends Error {
	constructor(key: string, reason: string, options?: ErrorOptions) {
		super(
			`etcd key ${JSON.stringify(key)} was not written by Plinth: ${reason}. Delete the key, or use another prefix`,
			options,
		);
		this.name = "UnrecognizedData";
	}
}

/**
 * Decodes the resources stored in etcd. Resources of one type or tenancy share these objects, and no resource
 * keeps its response message alive.
 */
export class ResourceDecoder {
	readonly #keys: Keys;
	readonly #offset: VersionOffset;
	readonly #types = new Map<string, Type>();
	readonly #tenancies = new Map<string, Tenancy>();

	constructor(keys: Keys, offset: VersionOffset) {
		this.#keys = keys;
		this.#offset = offset;
	}

	/**
	 * The resource, at the version of its key, frozen in development.
	 *
	 * @throws UnrecognizedData
	 */
	decode({ key, value, modRevision }: KeyValue): Resource {
		const text = keyText(key);
		let resource: Resource;
		try {
			resource = fromBinary(ResourceSchema, value);
		} catch (cause) {
			throw new UnrecognizedData(text, cause instanceof Error ? cause.message : String(cause), {
				cause,
			});
		}
		if (resource.id === undefined || this.#keys.resource(resource.id) !== text) {
			throw new UnrecognizedData(text, "it is the value of another key");
		}
		resource.version = String(this.#offset.versionOf(modRevision));
		this.#share(resource.id);
		this.#share(resource.owner);
		if (resource.data !== undefined) {
			resource.data.value = resource.data.value.slice();
		}
		return freezeInDevelopment(resource);
	}

	#share(id: ID | undefined): void {
		if (id?.type !== undefined) {
			id.type = shared(this.#types, gvkKey(id.type), id.type);
		}
		if (id?.tenancy !== undefined) {
			const { partition, namespace } = id.tenancy;
			id.tenancy = shared(this.#tenancies, `${partition}/${namespace}`, id.tenancy);
		}
	}
}

/** The maximum of shared parts; further ones are not shared. */
const sharedParts = 100_000;

function shared<T>(known: Map<string, T>, key: string, part: T): T {
	const found = known.get(key);
	if (found === undefined && known.size < sharedParts) {
		known.set(key, part);
	}
	return found ?? part;
}

import { fromBinary, isMessage } from "@bufbuild/protobuf";
import { type ID, type Resource, ResourceSchema, type Tenancy, type Type } from "@plinth/proto";
import { freezeInDevelopment, gvkKey } from "@plinth/resource";
import { compileDecoder } from "@plinth/wire-format";
import { type Page, rowsOf } from "./page.ts";

/** Takes less than half of the time of `fromBinary`, and keeps strings that repeat once. */
const compiled = compileDecoder(ResourceSchema, { copiesBytes: false });

function decodeResource(body: Uint8Array): Resource {
	const resource = compiled(body);
	return resource !== undefined && isMessage(resource, ResourceSchema)
		? resource
		: fromBinary(ResourceSchema, body);
}

/**
 * Decodes rows to resources with about a third less memory than decoding alone: resources of one type or
 * tenancy share these objects, and the data of one page is copied to a shared buffer, since the buffer of
 * the decoder would keep the whole page alive.
 */
export class PageDecoder {
	readonly #types = new Map<string, Type>();
	/** By partition, then by namespace: no key has to be built. */
	readonly #tenancies = new Map<string, Map<string, Tenancy>>();

	/** The resources of a page, frozen in development. */
	decode(page: Page): readonly Resource[] {
		const resources: Resource[] = [];
		let dataBytes = 0;
		for (const { revision, body } of rowsOf(page)) {
			const resource = decodeResource(body);
			resource.version = String(revision);
			this.#share(resource.id);
			this.#share(resource.owner);
			dataBytes += resource.data?.value.byteLength ?? 0;
			resources.push(resource);
		}
		const shared = new Uint8Array(dataBytes);
		let end = 0;
		for (const { data } of resources) {
			if (data !== undefined) {
				const begin = end;
				shared.set(data.value, begin);
				end += data.value.byteLength;
				data.value = shared.subarray(begin, end);
			}
		}
		for (const resource of resources) {
			freezeInDevelopment(resource);
		}
		return resources;
	}

	#share(id: ID | undefined): void {
		if (id?.type !== undefined) {
			id.type = sharedPart(this.#types, gvkKey(id.type), id.type);
		}
		if (id?.tenancy !== undefined) {
			const { partition, namespace } = id.tenancy;
			let inPartition = this.#tenancies.get(partition);
			if (inPartition === undefined) {
				inPartition = new Map();
				this.#tenancies.set(partition, inPartition);
			}
			id.tenancy = sharedPart(inPartition, namespace, id.tenancy);
		}
	}
}

function sharedPart<T>(known: Map<string, T>, key: string, part: T): T {
	const shared = known.get(key);
	if (shared === undefined) {
		known.set(key, part);
	}
	return shared ?? part;
}

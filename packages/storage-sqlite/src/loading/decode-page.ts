import { fromBinary } from "@bufbuild/protobuf";
import { type ID, type Resource, ResourceSchema, type Tenancy, type Type } from "@plinth/proto";
import { freezeInDevelopment, gvkKey } from "@plinth/resource";
import { type Page, rowsOf } from "./page.ts";

/**
 * Decodes rows to resources with about a third less memory than decoding alone: resources of one type or
 * tenancy share these objects, and the data of one page is copied to a shared buffer, since the buffer of
 * the decoder would keep the whole page alive.
 */
export class PageDecoder {
	readonly #types = new Map<string, Type>();
	readonly #tenancies = new Map<string, Tenancy>();

	/** The resources of a page, frozen in development. */
	decode(page: Page): readonly Resource[] {
		const resources: Resource[] = [];
		let dataBytes = 0;
		for (const { revision, body } of rowsOf(page)) {
			const resource = fromBinary(ResourceSchema, body);
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
			id.tenancy = sharedPart(this.#tenancies, `${partition}/${namespace}`, id.tenancy);
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

import type { Resource } from "@plinth/proto";
import { approximateSize, resourceServiceLimits } from "../requests/limits.ts";

/** The resources of one response: a page, or everything. */
export class ResponsePage {
	readonly resources: Resource[] = [];
	readonly #pageSize: number;
	#bytes = 0;

	/** @param pageSize - 0 for everything. */
	constructor(pageSize: number) {
		this.#pageSize = pageSize;
	}

	/** Whether the response would be larger than a page may be. */
	get isTooLarge(): boolean {
		return this.#bytes > resourceServiceLimits.listBytes;
	}

	/** Adds a resource, unless the page is full. The first one always fits. */
	add(resource: Resource): boolean {
		this.#bytes += approximateSize(resource);
		const { length } = this.resources;
		if (this.#pageSize > 0 && length > 0 && (length === this.#pageSize || this.isTooLarge)) {
			return false;
		}
		this.resources.push(resource);
		return true;
	}
}

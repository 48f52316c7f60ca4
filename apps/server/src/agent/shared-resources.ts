import { createRegistry, equals } from "@bufbuild/protobuf";
import type { ResourceClient } from "@plinth/controller";
import { type Resource, ResourceSchema, type WatchEvent } from "@plinth/proto";
import { familyKey, type ResourceType } from "@plinth/resource";

/** Compares fields of later releases, too. */
const wholly = { unknown: true, registry: createRegistry() } as const;

/**
 * Lets the caches of all controllers of a process have the same objects, as those of a server have: each controller has
 * watches of its own, over which each resource arrives as another object.
 *
 * An object that arrives is replaced by an equal one that is still in use. They are compared as a whole: a storage that was
 * restored may give a version to other content than before. Nobody writes to an object in a cache, since the code of
 * controllers gets copies.
 */
export class SharedResources {
	readonly #families: ReadonlySet<string>;
	/** Keeps none in memory. */
	readonly #shared = new Map<string, WeakRef<Resource>>();
	/** Removes what no cache has any more. */
	readonly #unused = new FinalizationRegistry<string>((key) => {
		// Another object may have taken its place.
		if (this.#shared.get(key)?.deref() === undefined) {
			this.#shared.delete(key);
		}
	});

	/** @param types - those that several caches contain; resources of others are left as they are. */
	constructor(types: readonly ResourceType[]) {
		this.#families = new Set(types.map(({ family }) => family));
	}

	/** How many objects may be in use. */
	get size(): number {
		return this.#shared.size;
	}

	/** A client whose watches return shared objects. */
	client(client: ResourceClient): ResourceClient {
		return {
			...client,
			watchList: (request, options) => {
				const { group = "", kind = "" } = request.type ?? {};
				const events = client.watchList(request, options);
				return this.#families.has(familyKey({ group, kind })) ? this.#shareAll(events) : events;
			},
		};
	}

	async *#shareAll(events: AsyncIterable<WatchEvent>): AsyncGenerator<WatchEvent> {
		for await (const event of events) {
			if (event.event.case === "upsert") {
				const { value } = event.event;
				if (value.resource !== undefined) {
					value.resource = this.#share(value.resource);
				}
			}
			yield event;
		}
	}

	#share(resource: Resource): Resource {
		const { id, version } = resource;
		// The group version is part of it: each watch receives the one that it asks for.
		const key = `${id?.uid} ${id?.type?.groupVersion} ${version}`;
		const other = this.#shared.get(key)?.deref();
		if (other !== undefined && equals(ResourceSchema, other, resource, wholly)) {
			return other;
		}
		this.#shared.set(key, new WeakRef(resource));
		this.#unused.register(resource, key);
		return resource;
	}
}

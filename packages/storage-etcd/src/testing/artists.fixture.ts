import { create } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import { type ID, type Resource, ResourceSchema } from "@plinth/proto";
import type { ListQuery, Mutation, StorageBackend, WatchEvent } from "@plinth/storage";

const type = { group: "demo", groupVersion: "v1", kind: "Artist" };

/** A resource that is fit to be put, with a text for its data. */
export function artist(name: string, text = ""): Resource & { readonly id: ID } {
	const resource = create(ResourceSchema, {
		id: {
			name,
			uid: `uid-of-${name}`,
			type,
			tenancy: { partition: "default", namespace: "default" },
		},
		data: create(AnySchema, {
			typeUrl: "type.googleapis.com/test.Text",
			value: new TextEncoder().encode(text),
		}),
	});
	return resource as Resource & { readonly id: ID };
}

/** The ID of an artist. */
export function idOfArtist(name: string): ID {
	return artist(name).id;
}

/** A mutation that puts an artist. */
export function put(name: string, text = "", expectedVersion = ""): Mutation {
	return { op: "put", resource: artist(name, text), expectedVersion };
}

/** The text of an artist. */
export function textOf(resource: Resource | undefined): string {
	return new TextDecoder().decode(resource?.data?.value);
}

/** The query of all of them. */
export const allArtists: ListQuery = {
	type,
	tenancy: { partition: "*", namespace: "*" },
	namePrefix: "",
};

/** The artists that a backend lists, as `name=text`. */
export async function listed(backend: StorageBackend): Promise<readonly string[]> {
	const { resources } = await backend.list(allArtists);
	return resources.map((each) => `${each.id?.name}=${textOf(each)}`);
}

/** A watch of all artists, read step by step. */
export class ArtistWatch {
	readonly #abort = new AbortController();
	readonly #events: AsyncIterator<WatchEvent>;

	constructor(backend: StorageBackend, afterVersion?: string) {
		const options = {
			signal: this.#abort.signal,
			...(afterVersion !== undefined && { afterVersion }),
		};
		this.#events = backend.watchList(allArtists, options)[Symbol.asyncIterator]();
	}

	/** The next event: `upsert name=text`, `delete name` or the kind. */
	async next(): Promise<string> {
		const { value } = await this.#events.next();
		if (value.kind === "upsert") {
			return `upsert ${value.resource.id?.name}=${textOf(value.resource)}`;
		}
		return value.kind === "delete" ? `delete ${value.resource.id?.name}` : value.kind;
	}

	/** Reads up to the end of the snapshot. */
	async snapshot(): Promise<readonly string[]> {
		const events: string[] = [];
		for (let event = await this.next(); event !== "end-of-snapshot"; event = await this.next()) {
			events.push(event);
		}
		return events;
	}

	/** What reading on fails with. */
	async failure(): Promise<unknown> {
		try {
			for (;;) {
				await this.next();
			}
		} catch (error) {
			return error;
		}
	}

	end(): void {
		this.#abort.abort(new Error("enough"));
	}
}

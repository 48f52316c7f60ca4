import type { ID, Resource } from "@plinth/proto";
import type { StorageBackend } from "../backend.ts";
import { idFor, query, resource, textOf, WatchReader } from "../conformance/test-resources.ts";
import type { Mutation } from "../mutation.ts";

export { textOf };

/** An artist that can be stored, with a text as its data. */
export function artist(name: string, text = ""): Resource & { readonly id: ID } {
	return resource(name, { text });
}

/** The ID of an artist. */
export function idOfArtist(name: string): ID {
	return idFor(name);
}

/** A mutation that puts an artist. */
export function putArtist(name: string, text = "", expectedVersion = ""): Mutation {
	return { op: "put", resource: artist(name, text), expectedVersion };
}

/** The query that matches all artists. */
export const allArtists = query();

/** The artists that a backend lists, as `name=text`. */
export async function listArtists(backend: StorageBackend): Promise<readonly string[]> {
	const { resources } = await backend.list(allArtists);
	return resources.map((each) => `${each.id?.name}=${textOf(each)}`);
}

/** A watch of all artists that is read event by event. */
export class ArtistWatch {
	readonly #reader: WatchReader;

	constructor(backend: StorageBackend, afterVersion?: string) {
		this.#reader = new WatchReader(backend, allArtists, { afterVersion });
	}

	/** The next event: `upsert name=text`, `delete name` or the event's kind. */
	async next(): Promise<string> {
		const event = await this.#reader.next();
		if (event.kind === "upsert") {
			return `upsert ${event.resource.id?.name}=${textOf(event.resource)}`;
		}
		return event.kind === "delete" ? `delete ${event.resource.id?.name}` : event.kind;
	}

	/** The events up to the end of the snapshot. */
	async snapshot(): Promise<readonly string[]> {
		const events: string[] = [];
		for (let event = await this.next(); event !== "end-of-snapshot"; event = await this.next()) {
			events.push(event);
		}
		return events;
	}

	/** The error that the watch ends with. */
	failure(): Promise<unknown> {
		return this.#reader.failure();
	}

	/** Aborts the watch. */
	end(): void {
		this.#reader.abort();
	}
}

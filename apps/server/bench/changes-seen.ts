import { createClient, type Transport } from "@connectrpc/connect";
import { ResourceService } from "@plinth/proto";
import { decodeShared, typeOf } from "@plinth/resource";
import { Artist } from "../testdata/music.ts";
import { headers } from "./harness/content.ts";

/** A watch of what changes: the genre of each artist, as it was seen last. */
export class ChangesSeen {
	readonly #genres = new Map<string, string>();
	readonly #end = new AbortController();
	#changed = Promise.withResolvers<void>();

	/** @param region - of which copies are watched; empty for the resources of the server itself. */
	constructor(transport: Transport, partition: string, namespace: string, region = "") {
		const client = createClient(ResourceService, transport);
		const request = { type: typeOf(Artist.type), tenancy: { partition, namespace }, region };
		const follow = async () => {
			const { signal } = this.#end;
			for await (const { event } of client.watchList(request, { headers, signal })) {
				if (event.case === "upsert" && event.value.resource !== undefined) {
					const { id } = event.value.resource;
					this.#genres.set(id?.name ?? "", decodeShared(Artist, event.value.resource).data.genre);
					this.#changed.resolve();
					this.#changed = Promise.withResolvers();
				}
			}
		};
		follow().catch((failure: unknown) => {
			if (!this.#end.signal.aborted) {
				throw failure;
			}
		});
	}

	/** Resolves when the artist has that genre. */
	async has(name: string, genre: string): Promise<void> {
		while (this.#genres.get(name) !== genre) {
			await this.#changed.promise;
		}
	}

	close(): void {
		this.#end.abort();
	}
}

import { create, toBinary } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import { type Resource, ResourceSchema } from "@plinth/proto";
import { nameKey } from "@plinth/resource";
import { createIfMissing } from "../src/file/create-storage.ts";
import { StorageWriter } from "../src/file/storage-writer.ts";

/** The n-th resource of a large storage: of a thousand namespaces, with 300 bytes of data. */
export function nthArtist(index: number): Resource {
	return create(ResourceSchema, {
		id: {
			name: `artist-${index}`,
			uid: "01J9ZZZZZZZZZZZZZZZZZZZZZZ",
			type: { group: "demo", groupVersion: "v2", kind: "Artist" },
			tenancy: { partition: "default", namespace: `team-${index % 1000}` },
		},
		generation: "01J9ZZZZZZZZZZZZZZZZZZZZZZ",
		metadata: { team: "jazz" },
		data: create(AnySchema, {
			typeUrl: "type.googleapis.com/acme.demo.v2.Artist",
			value: new Uint8Array(300),
		}),
	});
}

/** Makes a storage of that many resources, the n-th at version n + 1. */
export function fill(path: string, size: number): void {
	createIfMissing(path, { uid: "bench", incarnation: "bench" });
	const writer = new StorageWriter(path, { revision: 0, resources: 0, digest: 0 });
	for (let first = 0; first < size; first += 10_000) {
		const count = Math.min(10_000, size - first);
		const rows = Array.from({ length: count }, (_, offset) => {
			const index = first + offset;
			const resource = nthArtist(index);
			const key = nameKey(resource.id ?? { name: "" });
			return { key, revision: index + 1, body: toBinary(ResourceSchema, resource) };
		});
		writer.write(first + count, rows);
	}
	writer.close();
}

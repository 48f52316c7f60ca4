import { create } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import { type Resource, ResourceSchema } from "@plinth/proto";
import type { ListQuery } from "../src/index.ts";

const type = { group: "demo", groupVersion: "v2", kind: "Artist" };

/** The query of a namespace, or of all. */
export function artists(namespace = "*", namePrefix = ""): ListQuery {
	return {
		type,
		tenancy: { partition: namespace === "*" ? "*" : "default", namespace },
		namePrefix,
	};
}

/** A resource of about 600 bytes, one of a hundred in its namespace. */
export function artist(index: number): Resource {
	return create(ResourceSchema, {
		id: {
			name: `artist-${String(index).padStart(8, "0")}`,
			uid: "01J9ZZZZZZZZZZZZZZZZZZZZZZ",
			type,
			tenancy: { partition: "default", namespace: `team-${Math.floor(index / 100)}` },
		},
		generation: "01J9ZZZZZZZZZZZZZZZZZZZZZZ",
		metadata: { team: "jazz", region: "north" },
		data: create(AnySchema, {
			typeUrl: "type.googleapis.com/acme.demo.v2.Artist",
			value: new Uint8Array(300),
		}),
	});
}

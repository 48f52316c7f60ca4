import { create } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import {
	Condition_State,
	type Resource,
	ResourceSchema,
	StatusSchema,
	TypeSchema,
} from "@plinth/proto";
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

/** The same with a status of two conditions, one of which is FALSE; that of every other one is stale. */
export function reported(index: number): Resource {
	const resource = artist(index);
	const observedGeneration = index % 2 === 0 ? resource.generation : "";
	const status = create(StatusSchema, {
		observedGeneration,
		conditions: [
			{ type: "Ready", state: Condition_State.TRUE },
			{ type: "Healthy", state: Condition_State.FALSE },
		],
	});
	return create(ResourceSchema, { ...resource, status: { singers: status } });
}

/** How many albums an artist owns. */
export const perOwner = 10;

/** An album, one of ten of its owner. */
export function album(index: number): Resource {
	const resource = artist(index);
	const { id } = resource;
	const owner = artist(Math.floor(index / perOwner)).id;
	return {
		...resource,
		...(id && { id: { ...id, type: create(TypeSchema, { ...type, kind: "Album" }) } }),
		...(owner && { owner }),
	};
}

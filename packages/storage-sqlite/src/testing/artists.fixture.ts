import { create } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import { type Resource, ResourceSchema } from "@plinth/proto";
import type { ListQuery, WatchEvent } from "@plinth/storage";

const type = { group: "demo", groupVersion: "v1", kind: "Artist" };

/** A resource that is fit to be put, with a text for its data. */
export function artist(name: string, text = ""): Resource {
	return create(ResourceSchema, {
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

/** The next event of a watch. */
export async function nextEvent(watch: AsyncIterable<WatchEvent>): Promise<WatchEvent | undefined> {
	const { value } = await watch[Symbol.asyncIterator]().next();
	return value;
}

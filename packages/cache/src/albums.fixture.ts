import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import type { Resource } from "@plinth/proto";
import { idOf, referenceTo, resourceOf, type TenancyLike } from "@plinth/resource";
import { AlbumSchema, ArtistSchema, RegionSchema } from "../testdata/src/gen/demo/v2/demo_pb.ts";
import { Album, Artist, Label, Region } from "./demo-types.fixture.ts";

/** An album in the default tenancy, unless another is given. */
export function album(
	name: string,
	data: MessageInitShape<typeof AlbumSchema> = {},
	tenancy: TenancyLike = {},
): Resource {
	return resourceOf(Album, { id: idOf(Album, name, tenancy), data: create(AlbumSchema, data) });
}

export function artist(name: string, tenancy: TenancyLike = {}): Resource {
	return resourceOf(Artist, { id: idOf(Artist, name, tenancy), data: create(ArtistSchema) });
}

export function region(name: string): Resource {
	return resourceOf(Region, { id: idOf(Region, name), data: create(RegionSchema) });
}

/** An album whose data is an artist's. */
export function undecodable(name: string): Resource {
	const broken = album(name);
	broken.data = anyPack(ArtistSchema, create(ArtistSchema));
	return broken;
}

/** A reference to a label in the default partition. */
export function labelReference(name: string) {
	return referenceTo({ type: Label.type, tenancy: { partition: "default" }, name });
}

/** The names of resources, in their order. */
export function names(items: Iterable<{ readonly resource: Resource }>): string[] {
	return Array.from(items, ({ resource }) => resource.id?.name ?? "");
}

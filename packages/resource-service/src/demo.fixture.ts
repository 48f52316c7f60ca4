import { create } from "@bufbuild/protobuf";
import type { ID, Resource } from "@plinth/proto";
import {
	allowed,
	defineType,
	denied,
	idOf,
	needsResource,
	type ResourceType,
	resourceOf,
	type TenancyLike,
} from "@plinth/resource";
import { ArtistSchema as ArtistV1Schema } from "../testdata/gen/acme/demo/v1/demo_pb.ts";
import {
	AlbumSchema,
	ArtistSchema,
	FestivalSchema,
	LabelSchema,
	RecordingSchema,
	SecretSchema,
} from "../testdata/gen/acme/demo/v2/demo_pb.ts";

/** `demo.v1.Artist`, of one family with `demo.v2.Artist`. */
export const ArtistV1 = defineType(ArtistV1Schema);

/** Namespace scoped, with a mutate and a validate hook. */
export const Artist = defineType(ArtistSchema, {
	mutate({ data }) {
		data.genre ||= "jazz";
	},
	validate({ data }) {
		if (data.name === "") {
			throw new Error("artist.name must not be empty");
		}
		if (data.name === "bug") {
			data.name.repeat(-1);
		}
	},
});

/** Namespace scoped, without hooks. */
export const Album = defineType(AlbumSchema);

/** Partition scoped. */
export const Festival = defineType(FestivalSchema);

/** Cluster scoped. */
export const Label = defineType(LabelSchema);

/** Namespace scoped; its data may hold what JSON has no form for. */
export const Recording = defineType(RecordingSchema);

/** Only the subject that it names may read and write it. */
export const Secret = defineType(SecretSchema, {
	authorize: {
		read: (access, _id, secret) =>
			secret === undefined
				? needsResource
				: secret.data.reader === access.subject
					? allowed
					: denied(`${access.subject} is not ${secret.data.reader}`),
		write: (access, _id, secret) =>
			secret === undefined
				? needsResource
				: secret.data.reader === access.subject
					? allowed
					: denied(`${access.subject} may not write for ${secret.data.reader}`),
		list: (access) => (access.subject === "nobody" ? denied("nobody lists secrets") : allowed),
	},
});

/** All types of the tests. */
export const demoTypes: readonly ResourceType[] = [
	ArtistV1,
	Artist,
	Album,
	Festival,
	Label,
	Recording,
	Secret,
];

/** An artist that is fit to be written. */
export function artist(name: string, tenancy: TenancyLike = {}, genre = ""): Resource {
	return resourceOf(Artist, {
		id: idOf(Artist, name, tenancy),
		data: create(ArtistSchema, { name, genre }),
	});
}

/** An album that is fit to be written. */
export function album(name: string, options: { owner?: ID; tenancy?: TenancyLike } = {}): Resource {
	return resourceOf(Album, {
		id: idOf(Album, name, options.tenancy),
		data: create(AlbumSchema, { title: name }),
		...(options.owner && { owner: options.owner }),
	});
}

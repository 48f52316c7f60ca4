import { create, type DescMethod, type Message, toBinary } from "@bufbuild/protobuf";
import { anyPack, timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
	DeleteRequestSchema,
	ListByOwnerRequestSchema,
	ListRequestSchema,
	MutateAndValidateRequestSchema,
	ReadRequestSchema,
	type Resource,
	ResourceService,
	StatusSchema,
	WatchListRequestSchema,
	WatchSetRequestSchema,
	WriteRequestSchema,
	WriteStatusRequestSchema,
} from "@plinth/proto";
import { finalizersKey, idOf, newUlid, referenceTo, resourceOf, typeOf } from "@plinth/resource";
import { type Random, systemClock } from "@plinth/runtime";
import { ArtistSchema as ArtistV1Schema } from "../../testdata/gen/acme/demo/v1/demo_pb.ts";
import {
	AlbumSchema,
	ArtistSchema,
	LabelSchema,
	type Recording as RecordingMessage,
	RecordingSchema,
} from "../../testdata/gen/acme/demo/v2/demo_pb.ts";
import { Album, Artist, ArtistV1, artist, Label, Recording } from "../demo.fixture.ts";
import { pick } from "../simulation/simulation.fixture.ts";

/** A method, and a valid request message. */
export interface ValidRequest {
	readonly method: DescMethod;
	readonly message: Message;
}

const names = ["a", "b", "c", "d"] as const;
const tenancies = [{}, {}, { namespace: "n" }, { namespace: "gone" }] as const;
const types = [Artist, Album, Recording, ArtistV1, Label] as const;

/** The owner, in every run, of resources of unregistered types. */
export const ownerOfUnregistered = { name: "owner", uid: "01ARZ3NDEKTSV4RRFFQ69G5FAV" };

/** A valid request on one of a few resources. */
export function drawRequest(random: Random): ValidRequest {
	const { method } = ResourceService;
	const type = pick(random, types);
	const tenancy = type === Label ? {} : pick(random, tenancies);
	const id = idOf(type, pick(random, names), tenancy);
	const drawn = Math.floor(random.next() * 10);
	switch (drawn) {
		case 0:
			return { method: method.read, message: create(ReadRequestSchema, { id }) };
		case 1:
			return { method: method.delete, message: create(DeleteRequestSchema, { id }) };
		case 2: {
			const pageSize = pick(random, [0, 0, 1, 3]);
			const message = create(ListRequestSchema, { type: typeOf(type.type), tenancy, pageSize });
			return { method: method.list, message };
		}
		case 3: {
			const owner = { ...idOf(Artist, ownerOfUnregistered.name), uid: ownerOfUnregistered.uid };
			const pageSize = pick(random, [0, 1]);
			const message = create(ListByOwnerRequestSchema, { owner, pageSize });
			return { method: method.listByOwner, message };
		}
		case 4: {
			const status = create(StatusSchema, {
				observedGeneration: newUlid({ clock: systemClock, random }),
				conditions: [
					{ type: "Ready", message: "as it is", resource: referenceTo(idOf(Label, "l")) },
				],
			});
			const message = create(WriteStatusRequestSchema, {
				id: { ...idOf(Artist, ownerOfUnregistered.name), uid: ownerOfUnregistered.uid },
				key: pick(random, ["one", "two", "toString"]),
				status,
			});
			return { method: method.writeStatus, message };
		}
		case 5: {
			const message = create(WatchListRequestSchema, { type: typeOf(type.type), bookmarks: true });
			return { method: method.watchList, message };
		}
		case 6: {
			const message = create(MutateAndValidateRequestSchema, { resource: drawResource(random) });
			return { method: method.mutateAndValidate, message };
		}
		case 7: {
			const watches = types.map((watched, index) => ({
				id: `${index}`,
				request: { type: typeOf(watched.type) },
			}));
			return { method: method.watchSet, message: create(WatchSetRequestSchema, { watches }) };
		}
		default:
			return {
				method: method.write,
				message: create(WriteRequestSchema, { resource: drawResource(random) }),
			};
	}
}

function drawResource(random: Random): Resource {
	const name = pick(random, names);
	const tenancy = pick(random, tenancies);
	const resource = drawContent(random, name, tenancy);
	if (random.next() < 0.1) {
		resource.metadata[finalizersKey] = "x";
	}
	if (random.next() < 0.1) {
		resource.owner = idOf(Artist, ownerOfUnregistered.name);
	}
	if (random.next() < 0.1) {
		resource.metadata.note = "as it is";
	}
	return resource;
}

function drawContent(random: Random, name: string, tenancy: { readonly namespace?: string }) {
	switch (pick(random, types)) {
		case Album: {
			const data = create(AlbumSchema, { title: name });
			return resourceOf(Album, { id: idOf(Album, name, tenancy), data });
		}
		case ArtistV1: {
			const data = create(ArtistV1Schema, { name });
			return resourceOf(ArtistV1, { id: idOf(ArtistV1, name, tenancy), data });
		}
		case Label: {
			const data = create(LabelSchema, { title: name });
			return resourceOf(Label, { id: idOf(Label, name), data });
		}
		case Recording: {
			const id = idOf(Recording, name, tenancy);
			return resourceOf(Recording, { id, data: drawRecording(random, 2) });
		}
		default:
			return artist(name, tenancy);
	}
}

/** With what JSON has no form for, now and then. */
function drawRecording(random: Random, depth: number): RecordingMessage {
	const unregistered = { typeUrl: "type.googleapis.com/acme.Nope", value: new Uint8Array([1, 2]) };
	const extra = pick(random, [
		undefined,
		anyPack(ArtistSchema, create(ArtistSchema, { name: "extra" })),
		unregistered,
		{ ...unregistered, typeUrl: "type.googleapis.com/acme.demo.v2.Artist" },
	]);
	const seconds = pick(random, [0, 0, 1e15]);
	return create(RecordingSchema, {
		title: "take",
		...(extra && { extra }),
		takenAt: timestampFromMs(seconds * 1_000),
		notes: { mood: "good" },
		takes: depth > 0 && random.next() < 0.5 ? [drawRecording(random, depth - 1)] : [],
		credits: { drums: "max" },
	});
}

/** The request as bytes of a message. */
export function binaryOf({ method, message }: ValidRequest): Uint8Array {
	return toBinary(method.input, message);
}

import { create } from "@bufbuild/protobuf";
import { timestampNow } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import {
	ConditionSchema,
	type ID,
	NamespaceSchema,
	OwnerReferenceSchema,
	ReferenceSchema,
	type Resource,
	StatusSchema,
} from "@plinth/proto";
import {
	deletionTimestampKey,
	encodeData,
	finalizersKey,
	idOf,
	Namespace,
	Partition,
	resourceOf,
	Tombstone,
	typeOf,
} from "@plinth/resource";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
	AlbumSchema,
	ArtistSchema,
	FestivalSchema,
	LabelSchema,
} from "../testdata/gen/acme/demo/v2/demo_pb.ts";
import { Artist, ArtistV1, album, artist, Festival, Label } from "./demo.fixture.ts";
import { connections, expectRefusal, startService, type TestService } from "./service.fixture.ts";

/** One refusal of the resource API: the call, and its error. */
interface Refusal {
	readonly rule: string;
	readonly call: (t: TestService) => Promise<unknown>;
	readonly code?: Code;
	readonly message: string | RegExp;
}

const ulid = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
const now = "2026-01-01T00:00:00Z";
/** Names both versions. */
const staleVersion =
	/^CAS operation failed because the given version doesn't match what is stored: given "(\d+)", stored "(?!\1")\d+"$/;

async function stored(t: TestService, resource: Resource): Promise<Resource> {
	const { resource: response } = await t.client.write({ resource });
	if (response === undefined) {
		throw new Error("the response has no resource");
	}
	return response;
}

function withId(change: Partial<ID>, resource = artist("miles")): Resource {
	return { ...resource, id: { ...(resource.id ?? idOf(Artist, "miles")), ...change } };
}

function withMetadata(resource: Resource, metadata: Record<string, string>): Resource {
	return { ...resource, metadata: { ...resource.metadata, ...metadata } };
}

function without(resource: Resource, part: "id" | "data" | "owner"): Resource {
	const { [part]: _, ...rest } = resource;
	return rest;
}

/** A stored artist that is marked for deletion and waits for two finalizers. */
async function marked(t: TestService): Promise<Resource> {
	const { id } = await stored(t, withMetadata(artist("miles"), { [finalizersKey]: "a b" }));
	await t.client.delete({ ...(id && { id }) });
	const { resource } = await t.client.read({ ...(id && { id }) });
	if (resource === undefined) {
		throw new Error("the response has no resource");
	}
	return resource;
}

const status = (change: object = {}) =>
	create(StatusSchema, { observedGeneration: ulid, ...change });

const shape: readonly Refusal[] = [
	{
		rule: "Missing: resource",
		call: (t) => t.client.write({}),
		message: "resource is required",
	},
	{
		rule: "Missing: id",
		call: (t) => t.client.write({ resource: without(artist("miles"), "id") }),
		message: "resource.id is required",
	},
	{
		rule: "Missing: type",
		call: (t) => t.client.read({ id: { name: "miles" } }),
		message: "id.type is required",
	},
	{
		rule: "Missing: a part of the type",
		call: (t) => t.client.read({ id: { name: "miles", type: { group: "demo", kind: "Artist" } } }),
		message: "id.type.group_version is required",
	},
	{
		rule: "Missing: an empty name",
		call: (t) => t.client.read({ id: idOf(Artist, "") }),
		message: "id.name is required",
	},
	{
		rule: "Malformed: a name that is no label",
		call: (t) => t.client.write({ resource: withId({ name: "Miles Davis" }) }),
		message: /^resource\.id\.name invalid: must consist of .*, got: "Miles Davis"$/,
	},
	{
		rule: "Malformed: a name that is too long",
		call: (t) => t.client.delete({ id: idOf(Artist, "x".repeat(64)) }),
		message: `id.name invalid: must be at most 63 characters long, got: "${"x".repeat(64)}"`,
	},
	{
		rule: "Malformed: a partition",
		call: (t) => t.client.read({ id: idOf(Artist, "miles", { partition: "A" }) }),
		message: /^id\.tenancy\.partition invalid: .*, got: "A"$/,
	},
	{
		rule: "Malformed: a namespace",
		call: (t) => t.client.list({ type: Artist.type, tenancy: { namespace: "a_b" } }),
		message: /^tenancy\.namespace invalid: .*, got: "a_b"$/,
	},
	{
		rule: "Malformed: a name prefix",
		call: (t) => t.client.list({ type: Artist.type, tenancy: {}, namePrefix: "Mi" }),
		message: 'name_prefix invalid: must be lower-case, got: "Mi"',
	},
	{
		rule: "Unknown type",
		call: (t) =>
			t.client.read({
				id: { name: "x", type: { group: "demo", groupVersion: "v9", kind: "Nope" } },
			}),
		message: "resource type demo.v9.Nope not registered",
	},
	{
		rule: "Unknown type of an owner",
		call: (t) =>
			t.client.write({
				resource: {
					...artist("miles"),
					owner: {
						...idOf(Artist, "x"),
						type: typeOf({ group: "demo", groupVersion: "v9", kind: "Nope" }),
					},
				},
			}),
		message: "resource type demo.v9.Nope not registered",
	},
	{
		rule: "Missing: the type of an owner",
		call: (t) =>
			t.client.write({
				resource: {
					...album("blue"),
					owner: { ...idOf(Artist, "x"), type: typeOf({ group: "", groupVersion: "", kind: "" }) },
				},
			}),
		message: "resource.owner.type is required",
	},
	{
		rule: "A resource can't own itself",
		call: (t) => t.client.write({ resource: { ...artist("x"), owner: idOf(Artist, "x") } }),
		message: "resource.owner invalid: a resource can't own itself",
	},
	{
		rule: "Tombstones are written by deletions only",
		call: (t) => t.client.write({ resource: resourceOf(Tombstone, { id: idOf(Tombstone, "x") }) }),
		message: "tombstones are written only by deletions",
	},
	{
		rule: "Missing: the name of an owner reference",
		call: (t) =>
			t.client.write({
				resource: {
					...artist("x"),
					ownerReferences: [create(OwnerReferenceSchema, { type: Artist.type })],
				},
			}),
		message: "resource.owner_references[0].name is required",
	},
	{
		rule: "Scope: a partition scoped resource has no namespace",
		call: (t) =>
			t.client.write({
				resource: resourceOf(Festival, {
					id: {
						...idOf(Festival, "x"),
						tenancy: { ...idOf(Artist, "x").tenancy!, namespace: "n" },
					}, // idOf always has a tenancy
					data: create(FestivalSchema),
				}),
			}),
		message: 'partition scoped resource demo.v2.Festival cannot have a namespace. got: "n"',
	},
	{
		rule: "Scope: a cluster scoped resource has no partition",
		call: (t) =>
			t.client.read({ id: { name: "x", type: Label.type, tenancy: { partition: "p" } } }),
		message: 'cluster scoped resource demo.v2.Label cannot have a partition. got: "p"',
	},
	{
		rule: "Scope: a cluster scoped resource has no namespace",
		call: (t) =>
			t.client.read({ id: { name: "x", type: Label.type, tenancy: { namespace: "n" } } }),
		message: 'cluster scoped resource demo.v2.Label cannot have a namespace. got: "n"',
	},
	{
		rule: "Data of the type's message",
		call: (t) =>
			t.client.write({
				resource: { ...artist("miles"), data: encodeData(AlbumSchema, create(AlbumSchema)) },
			}),
		message:
			'resource.data is of wrong type. expected: "acme.demo.v2.Artist", got: "acme.demo.v2.Album"',
	},
	{
		rule: "Data that can't be decoded",
		call: (t) =>
			t.client.write({
				resource: {
					...artist("miles"),
					data: {
						...encodeData(ArtistSchema, create(ArtistSchema)),
						value: new Uint8Array([255, 255]),
					},
				},
			}),
		message: "resource.data invalid: malformed acme.demo.v2.Artist",
	},
	{
		rule: "A hook's message is passed on as it is",
		call: (t) =>
			t.client.write({
				resource: {
					...artist("miles"),
					data: encodeData(ArtistSchema, create(ArtistSchema)),
				},
			}),
		message: "artist.name must not be empty",
	},
	{
		rule: "Internal only for a fault of the server, with nothing of its insides",
		call: (t) =>
			t.client.write({
				resource: {
					...artist("miles"),
					data: encodeData(ArtistSchema, create(ArtistSchema, { name: "bug" })),
				},
			}),
		code: Code.Internal,
		message: "internal error",
	},
	{
		rule: "Malformed: finalizers",
		call: (t) =>
			t.client.write({ resource: withMetadata(artist("miles"), { [finalizersKey]: "a  b" }) }),
		message:
			'resource.metadata.finalizers invalid: must be names separated by single spaces, got: "a  b"',
	},
	{
		rule: "Malformed: deletionTimestamp",
		call: (t) =>
			t.client.write({
				resource: withMetadata(artist("miles"), { [deletionTimestampKey]: "yesterday" }),
			}),
		message:
			'resource.metadata.deletionTimestamp invalid: must be an RFC 3339 time, got: "yesterday"',
	},
	{
		rule: "Malformed: deletionTimestamp of a resource that is not marked yet",
		call: async (t) => {
			await stored(t, artist("miles"));
			return t.client.write({
				resource: withMetadata(artist("miles"), { [deletionTimestampKey]: "yesterday" }),
			});
		},
		message:
			'resource.metadata.deletionTimestamp invalid: must be an RFC 3339 time, got: "yesterday"',
	},
	{
		rule: "Malformed: a refused value is quoted in part where it is long",
		call: (t) =>
			t.client.write({
				resource: withMetadata(artist("m"), { [deletionTimestampKey]: "x".repeat(4000) }),
			}),
		message: `resource.metadata.deletionTimestamp invalid: must be an RFC 3339 time, got: "${"x".repeat(100)}…"`,
	},
	{
		rule: "Limit: metadata entries",
		call: (t) =>
			t.client.write({
				resource: withMetadata(
					artist("miles"),
					Object.fromEntries(Array.from({ length: 65 }, (_, n) => [`k${n}`, ""])),
				),
			}),
		message: "resource.metadata invalid: has 65 entries, more than 64",
	},
	{
		rule: "Limit: metadata keys",
		call: (t) => t.client.write({ resource: withMetadata(artist("miles"), { "a b": "" }) }),
		message: /^resource\.metadata invalid: key "a b" does not match/,
	},
	{
		rule: "Limit: metadata values",
		call: (t) => t.client.write({ resource: withMetadata(artist("m"), { k: "é".repeat(2049) }) }),
		message: "resource.metadata invalid: the value of k is larger than 4096 bytes",
	},
	{
		rule: "Limit: owner references",
		call: (t) =>
			t.client.write({
				resource: {
					...artist("m"),
					ownerReferences: Array.from({ length: 65 }, () =>
						create(OwnerReferenceSchema, { type: Artist.type, name: "x" }),
					),
				},
			}),
		message: "resource.owner_references invalid: has 65 entries, more than 64",
	},
	{
		rule: "Limit: the size of a resource",
		call: (t) =>
			t.client.write({
				resource: resourceOf(Label, {
					id: idOf(Label, "l"),
					data: create(LabelSchema, { title: "x".repeat(1024 * 1024) }),
				}),
			}),
		message: /^resource is too large: \d+ bytes, more than 1048576$/,
	},
];

const reads: readonly Refusal[] = [
	{
		rule: "Read: what does not exist",
		call: (t) => t.client.read({ id: idOf(Artist, "miles") }),
		code: Code.NotFound,
		message: "resource not found",
	},
	{
		rule: "Read: another uid",
		call: async (t) => {
			await stored(t, artist("miles"));
			return t.client.read({ id: idOf(Artist, "miles", {}, ulid) });
		},
		code: Code.NotFound,
		message: "resource not found",
	},
	{
		rule: "Read: another group version than it is stored under",
		call: async (t) => {
			await stored(t, artist("miles"));
			return t.client.read({ id: idOf(ArtistV1, "miles") });
		},
		message: 'resource was requested with GroupVersion="v1", but stored with GroupVersion="v2"',
	},
	{
		rule: "Read: a missing partition",
		call: (t) => t.client.read({ id: idOf(Artist, "miles", { partition: "p" }) }),
		code: Code.NotFound,
		message: "partition not found: p",
	},
	{
		rule: "Read: a missing namespace",
		call: (t) => t.client.read({ id: idOf(Artist, "miles", { namespace: "n" }) }),
		code: Code.NotFound,
		message: "namespace not found: n",
	},
	{
		rule: "List: the type is required",
		call: (t) => t.client.list({ tenancy: {} }),
		message: "type is required",
	},
	{
		rule: "List: the tenancy is required",
		call: (t) => t.client.list({ type: Artist.type }),
		message: "tenancy is required",
	},
	{
		rule: "List: page_size is at most 1,000",
		call: (t) => t.client.list({ type: Artist.type, tenancy: {}, pageSize: 1001 }),
		message: "page_size invalid: must be from 0 to 1000",
	},
	{
		rule: "List: page_size is not negative",
		call: (t) => t.client.list({ type: Artist.type, tenancy: {}, pageSize: -1 }),
		message: "page_size invalid: must be from 0 to 1000",
	},
	{
		rule: "List: a malformed token",
		call: (t) => t.client.list({ type: Artist.type, tenancy: {}, pageToken: "nonsense" }),
		message: "page_token invalid: was not returned by a list",
	},
	{
		rule: "List: a token that has run out",
		call: (t) =>
			t.client.list({
				type: Artist.type,
				tenancy: {},
				pageToken: `${ulid}.${Buffer.from('["a","b","c"]').toString("base64url")}`,
			}),
		code: Code.OutOfRange,
		message: "page_token has expired: list again from the start",
	},
	{
		rule: "List: a token of another list",
		call: async (t) => {
			await stored(t, artist("a"));
			await stored(t, artist("b"));
			const page = await t.client.list({ type: Artist.type, tenancy: {}, pageSize: 1 });
			return t.client.list({
				type: Artist.type,
				tenancy: {},
				namePrefix: "b",
				pageSize: 1,
				pageToken: page.nextPageToken,
			});
		},
		message: "page_token invalid: belongs to another list",
	},
	{
		rule: "ListByOwner: the owner is required",
		call: (t) => t.client.listByOwner({}),
		message: "owner is required",
	},
	{
		rule: "ListByOwner: then its type",
		call: (t) => t.client.listByOwner({ owner: { name: "x" } }),
		message: "owner.type is required",
	},
	{
		rule: "ListByOwner: then its name",
		call: (t) => t.client.listByOwner({ owner: idOf(Artist, "") }),
		message: "owner.name is required",
	},
	{
		rule: "ListByOwner: then its uid",
		call: (t) => t.client.listByOwner({ owner: idOf(Artist, "miles") }),
		message: "owner uid is required",
	},
	{
		rule: "ListByOwner: page_size is at most 1,000",
		call: (t) =>
			t.client.listByOwner({ owner: { ...idOf(Artist, "miles"), uid: "u" }, pageSize: 1_001 }),
		message: "page_size invalid: must be from 0 to 1000",
	},
	{
		rule: "ListByOwner: page_token is one of its own",
		call: (t) =>
			t.client.listByOwner({
				owner: { ...idOf(Artist, "miles"), uid: "u" },
				pageToken: "nonsense",
			}),
		message: "page_token invalid: was not returned by a list",
	},
	{
		rule: "WatchList: the type is required",
		call: (t) => firstEvent(t, {}),
		message: "type is required",
	},
	{
		rule: "WatchList: a version that is not reached yet",
		call: (t) => firstEvent(t, { type: Artist.type, afterVersion: "999999" }),
		code: Code.OutOfRange,
		message: /watch again without a version$/,
	},
	{
		rule: "WatchList: a version that never was one",
		call: (t) => firstEvent(t, { type: Artist.type, afterVersion: "x" }),
		code: Code.OutOfRange,
		message: /watch again without a version$/,
	},
	{
		rule: "Consistency: an unknown mode",
		call: (t) =>
			t.client.read(
				{ id: idOf(Artist, "miles") },
				{ headers: { "x-plinth-consistency-mode": "sometimes" } },
			),
		message: 'x-plinth-consistency-mode invalid: "sometimes" is not "consistent"',
	},
	{
		rule: "Consistency: a position that is no version",
		call: (t) =>
			t.client.read({ id: idOf(Artist, "miles") }, { headers: { "x-plinth-not-before": "1e9" } }),
		message: 'x-plinth-not-before invalid: "1e9" is not a version',
	},
	{
		rule: "Consistency: a position that the storage has not reached",
		call: (t) =>
			t.client.list(
				{ type: Artist.type, tenancy: {} },
				{ headers: { "x-plinth-not-before": "999999" } },
			),
		code: Code.OutOfRange,
		message: /has not reached version 999999 .* begin again with 0$/,
	},
];

async function firstEvent(t: TestService, request: object): Promise<unknown> {
	const events = t.client.watchList(request)[Symbol.asyncIterator]();
	try {
		return await events.next();
	} finally {
		await events.return?.();
	}
}

const writes: readonly Refusal[] = [
	{
		rule: "Write, new: a status is refused",
		call: (t) => t.client.write({ resource: { ...artist("miles"), status: { c: status() } } }),
		message: "resource.status can only be set using the WriteStatus endpoint",
	},
	{
		rule: "Write, new: a deletionTimestamp is refused",
		call: (t) =>
			t.client.write({
				resource: withMetadata(artist("miles"), { [deletionTimestampKey]: now }),
			}),
		message: "resource.metadata.deletionTimestamp can't be set on resource creation",
	},
	{
		rule: "Write, new: a version is that of nothing",
		call: (t) => t.client.write({ resource: { ...artist("miles"), version: "1" } }),
		code: Code.Aborted,
		message:
			/^CAS operation failed because the given version doesn't match what is stored: given "1", nothing is stored$/,
	},
	{
		rule: "Write, new: a uid is that of nothing",
		call: (t) => t.client.write({ resource: withId({ uid: ulid }) }),
		code: Code.FailedPrecondition,
		message: "write failed because the given uid doesn't match what is stored",
	},
	{
		rule: "Write, new: an owner without a uid must exist",
		call: (t) => t.client.write({ resource: album("blue", { owner: idOf(Artist, "miles") }) }),
		message: "resource.owner does not exist: there is no demo.v2.Artist default/default/miles",
	},
	{
		rule: "Write, new: the owner of that uid must be there at the commit",
		call: async (t) => {
			await stored(t, artist("miles"));
			return t.client.write({
				resource: album("blue", { owner: idOf(Artist, "miles", {}, ulid) }),
			});
		},
		message: `resource.owner does not exist: there is no demo.v2.Artist default/default/miles with uid ${ulid}`,
	},
	{
		rule: "Write: a missing partition",
		call: (t) => t.client.write({ resource: artist("miles", { partition: "p" }) }),
		message: "partition not found: p",
	},
	{
		rule: "Write: a missing namespace",
		call: (t) => t.client.write({ resource: artist("miles", { namespace: "n" }) }),
		message: "namespace not found: n",
	},
	{
		rule: "Write: a tenancy that is marked",
		call: async (t) => {
			const namespace = resourceOf(Namespace, {
				id: idOf(Namespace, "n"),
				data: create(NamespaceSchema),
				metadata: { [finalizersKey]: "test" },
			});
			const { id } = await stored(t, namespace);
			await t.client.delete({ ...(id && { id }) });
			return t.client.write({ resource: artist("miles", { namespace: "n" }) });
		},
		message: "tenancy marked for deletion: tenancy.v1.Namespace default/n",
	},
	{
		rule: "Write, existing: a version that is not the current one",
		call: async (t) => {
			const first = await stored(t, artist("miles"));
			await stored(t, artist("miles"));
			return t.client.write({ resource: first });
		},
		code: Code.Aborted,
		message: staleVersion,
	},
	{
		rule: "Write, existing: a uid that differs",
		call: async (t) => {
			await stored(t, artist("miles"));
			return t.client.write({ resource: withId({ uid: ulid }) });
		},
		code: Code.FailedPrecondition,
		message: "write failed because the given uid doesn't match what is stored",
	},
	{
		rule: "Write, existing: the owner cannot be changed",
		call: async (t) => {
			const { id } = await stored(t, artist("miles"));
			await stored(t, artist("john"));
			await stored(t, album("blue", { ...(id && { owner: id }) }));
			return t.client.write({ resource: album("blue", { owner: idOf(Artist, "john") }) });
		},
		message: "owner cannot be changed",
	},
	{
		rule: "Write, existing: the owner cannot be left out",
		call: async (t) => {
			const { id } = await stored(t, artist("miles"));
			await stored(t, album("blue", { ...(id && { owner: id }) }));
			return t.client.write({ resource: album("blue") });
		},
		message: "owner cannot be changed",
	},
	{
		rule: "Write, existing: a status that differs is refused",
		call: async (t) => {
			const { id } = await stored(t, artist("miles"));
			await t.client.writeStatus({ ...(id && { id }), key: "c", status: status() });
			return t.client.write({ resource: { ...artist("miles"), status: { c: status() } } });
		},
		message: "resource.status can only be set using the WriteStatus endpoint",
	},
	{
		rule: "Marking changes nothing else: metadata",
		call: async (t) => {
			await stored(t, artist("miles"));
			return t.client.write({
				resource: withMetadata(artist("miles"), { [deletionTimestampKey]: now, other: "x" }),
			});
		},
		message: "a write that marks a resource for deletion can't change its metadata",
	},
	{
		rule: "Marking changes nothing else: data",
		call: async (t) => {
			await stored(t, artist("miles", {}, "jazz"));
			return t.client.write({
				resource: withMetadata(artist("miles", {}, "rock"), { [deletionTimestampKey]: now }),
			});
		},
		message: "a write that marks a resource for deletion can't change its data",
	},
	{
		rule: "Write, marked: the mark stays",
		call: async (t) => {
			const { metadata, ...rest } = await marked(t);
			const { [deletionTimestampKey]: _, ...left } = metadata;
			return t.client.write({ resource: { ...rest, metadata: left } });
		},
		message: "the resource is marked for deletion, so a write can't remove its deletionTimestamp",
	},
	{
		rule: "Write, marked: the mark is not modified",
		call: async (t) =>
			t.client.write({ resource: withMetadata(await marked(t), { [deletionTimestampKey]: now }) }),
		message: "the resource is marked for deletion, so a write can't change its deletionTimestamp",
	},
	{
		rule: "Write, marked: the mark is not modified, whatever its format",
		call: async (t) =>
			t.client.write({
				resource: withMetadata(await marked(t), { [deletionTimestampKey]: "yesterday" }),
			}),
		message: "the resource is marked for deletion, so a write can't change its deletionTimestamp",
	},
	{
		rule: "Write, marked: a write that changes nothing",
		call: async (t) => t.client.write({ resource: await marked(t) }),
		message:
			"the resource is marked for deletion, so a write can't leave it as it is: only finalizers can be removed",
	},
	{
		rule: "Write, marked: other metadata",
		call: async (t) => t.client.write({ resource: withMetadata(await marked(t), { other: "x" }) }),
		message:
			"the resource is marked for deletion, so a write can't change its metadata, except to remove finalizers",
	},
	{
		rule: "Write, marked: further finalizers",
		call: async (t) =>
			t.client.write({ resource: withMetadata(await marked(t), { [finalizersKey]: "a b c" }) }),
		message:
			"the resource is marked for deletion, so a write can't do anything but remove finalizers",
	},
	{
		rule: "Write, marked: another finalizer in place of one that is removed",
		call: async (t) =>
			t.client.write({ resource: withMetadata(await marked(t), { [finalizersKey]: "a c" }) }),
		message:
			"the resource is marked for deletion, so a write can't do anything but remove finalizers",
	},
	{
		rule: "Write, marked: data",
		call: async (t) =>
			t.client.write({
				resource: { ...(await marked(t)), ...pick(artist("miles", {}, "rock"), "data") },
			}),
		message: "the resource is marked for deletion, so a write can't change its data",
	},
	{
		rule: "Write, marked: at least one finalizer goes",
		call: async (t) =>
			t.client.write({ resource: withMetadata(await marked(t), { [finalizersKey]: "b a" }) }),
		message:
			"the resource is marked for deletion, so a write can't do anything but remove finalizers",
	},
];

function pick(resource: Resource, part: "data"): Partial<Resource> {
	const { [part]: value } = resource;
	return value === undefined ? {} : { [part]: value };
}

const statuses: readonly Refusal[] = [
	{
		rule: "WriteStatus: id.type",
		call: (t) => t.client.writeStatus({ id: { name: "x" } }),
		message: "id.type is required",
	},
	{
		rule: "WriteStatus: id.name",
		call: (t) => t.client.writeStatus({ id: idOf(Artist, "") }),
		message: "id.name is required",
	},
	{
		rule: "WriteStatus: id.uid",
		call: (t) => t.client.writeStatus({ id: idOf(Artist, "miles") }),
		message: "id.uid is required",
	},
	{
		rule: "WriteStatus: key",
		call: (t) => t.client.writeStatus({ id: idOf(Artist, "miles", {}, ulid) }),
		message: "key is required",
	},
	{
		rule: "WriteStatus: a key that would touch prototypes",
		call: (t) =>
			t.client.writeStatus({
				id: idOf(Artist, "miles", {}, ulid),
				key: "__proto__",
				status: status(),
			}),
		message: /^key invalid: does not match .*, got: "__proto__"$/,
	},
	{
		rule: "WriteStatus: status",
		call: (t) => t.client.writeStatus({ id: idOf(Artist, "miles", {}, ulid), key: "c" }),
		message: "status is required",
	},
	{
		rule: "WriteStatus: status.observed_generation",
		call: (t) => writeStatus(t, { observedGeneration: "" }),
		message: "status.observed_generation is required",
	},
	{
		rule: "WriteStatus: an observed generation that is no ULID",
		call: (t) => writeStatus(t, { observedGeneration: "1" }),
		message: 'status.observed_generation is not valid. got: "1"',
	},
	{
		rule: "WriteStatus: updated_at",
		call: (t) => writeStatus(t, { updatedAt: timestampNow() }),
		message: "status.updated_at is automatically set and cannot be provided",
	},
	{
		rule: "WriteStatus: each condition needs a type",
		call: (t) => writeStatus(t, { conditions: [create(ConditionSchema)] }),
		message: "status.conditions[0].type is required",
	},
	{
		rule: "WriteStatus: a condition's resource needs a type",
		call: (t) => writeStatus(t, { conditions: [about({ name: "x" })] }),
		message: "status.conditions[0].resource.type is required",
	},
	{
		rule: "WriteStatus: a condition's resource needs a name",
		call: (t) => writeStatus(t, { conditions: [about({ type: Artist.type })] }),
		message: "status.conditions[0].resource.name is required",
	},
	{
		rule: "WriteStatus: a condition's resource has a tenancy where its scope has one",
		call: (t) => writeStatus(t, { conditions: [about({ type: Artist.type, name: "x" })] }),
		message: "status.conditions[0].resource.tenancy is required",
	},
	{
		rule: "WriteStatus: a condition's resource is complete for its scope",
		call: (t) =>
			writeStatus(t, {
				conditions: [about({ type: Artist.type, name: "x", tenancy: { partition: "default" } })],
			}),
		message: "status.conditions[0].resource.tenancy.namespace is required",
	},
	{
		rule: "WriteStatus: a condition's resource fits its scope",
		call: (t) =>
			writeStatus(t, {
				conditions: [about({ type: Label.type, name: "x", tenancy: { partition: "p" } })],
			}),
		message: 'cluster scoped resource demo.v2.Label cannot have a partition. got: "p"',
	},
	{
		rule: "WriteStatus: missing",
		call: (t) => writeStatus(t, {}),
		code: Code.NotFound,
		message: "resource not found",
	},
	{
		rule: "WriteStatus: another uid",
		call: async (t) => {
			await stored(t, artist("miles"));
			return writeStatus(t, {});
		},
		code: Code.NotFound,
		message: "resource not found",
	},
	{
		rule: "WriteStatus: a missing namespace",
		call: (t) =>
			t.client.writeStatus({
				id: idOf(Artist, "miles", { namespace: "n" }, ulid),
				key: "c",
				status: status(),
			}),
		message: "namespace not found: n",
	},
	{
		rule: "WriteStatus: a stale version",
		call: async (t) => {
			const { id, version } = await stored(t, artist("miles"));
			await stored(t, artist("miles"));
			return t.client.writeStatus({ ...(id && { id }), version, key: "c", status: status() });
		},
		code: Code.Aborted,
		message: staleVersion,
	},
	{
		rule: "WriteStatus: more than 32 conditions",
		call: (t) =>
			writeStatus(t, {
				conditions: Array.from({ length: 33 }, () => create(ConditionSchema, { type: "x" })),
			}),
		message: "status.conditions invalid: has 33 entries, more than 32",
	},
	{
		rule: "WriteStatus: more than 32 statuses",
		call: async (t) => {
			const { id } = await stored(t, artist("miles"));
			for (let n = 0; n < 32; n += 1) {
				await t.client.writeStatus({ ...(id && { id }), key: `c${n}`, status: status() });
			}
			return t.client.writeStatus({ ...(id && { id }), key: "c32", status: status() });
		},
		message: "key invalid: the resource would have 33 statuses, more than 32",
	},
];

function writeStatus(t: TestService, change: object): Promise<unknown> {
	return t.client.writeStatus({
		id: idOf(Artist, "miles", {}, ulid),
		key: "c",
		status: status(change),
	});
}

function about(reference: object) {
	return create(ConditionSchema, { type: "x", resource: create(ReferenceSchema, reference) });
}

const deletions: readonly Refusal[] = [
	{
		rule: "Delete: a stale version",
		call: async (t) => {
			const { id, version } = await stored(t, artist("miles"));
			await stored(t, artist("miles"));
			return t.client.delete({ ...(id && { id }), version });
		},
		code: Code.Aborted,
		message: staleVersion,
	},
	{
		rule: "Delete: the default namespace",
		call: (t) => t.client.delete({ id: idOf(Namespace, "default") }),
		message: "the default namespace can't be deleted",
	},
	{
		rule: "Delete: the default partition",
		call: (t) => t.client.delete({ id: idOf(Partition, "default") }),
		message: "the default partition can't be deleted",
	},
];

describe.each(connections)("what the resource API refuses, %s", (connection) => {
	let t: TestService;
	beforeEach(async () => {
		t = await startService(connection);
	});
	afterEach(() => t[Symbol.asyncDispose]());

	describe.each([
		["shape", shape],
		["reads", reads],
		["writes", writes],
		["statuses", statuses],
		["deletions", deletions],
	] as const)("%s", (_, refusals) => {
		it.each(refusals)("$rule", async ({ call, code = Code.InvalidArgument, message }) => {
			await expectRefusal(call(t), code, message);
		});
	});

	it("MutateAndValidate refuses what Write refuses", async () => {
		for (const { rule, call, code = Code.InvalidArgument, message } of [...shape, ...writes]) {
			await using fresh = await startService(connection);
			const checking: TestService = {
				...fresh,
				client: {
					...fresh.client,
					// The last write of a rule's scenario is the one that is refused: so is the check.
					write: async (request, options) => {
						const outcome = await fresh.client
							.mutateAndValidate(
								{ ...(request.resource && { resource: request.resource }) },
								options,
							)
							.then(
								() => undefined,
								(refusal: unknown) => ({ refusal }),
							);
						if (outcome !== undefined) {
							throw outcome.refusal;
						}
						return fresh.client.write(request, options);
					},
				},
			};
			const refused = call(checking);
			await expectRefusal(refused, code, message).catch((failure: unknown) => {
				expect.fail(`${rule}: ${String(failure)}`);
			});
		}
	});
});

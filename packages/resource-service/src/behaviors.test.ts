import { create } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import {
	IDSchema,
	NamespaceSchema,
	PartitionSchema,
	type Resource,
	StatusSchema,
	TombstoneSchema,
	type WatchEvent,
	type WatchListRequest,
} from "@plinth/proto";
import {
	decode,
	deletionTimestampKey,
	finalizersKey,
	idOf,
	isUlid,
	Namespace,
	Partition,
	resourceOf,
	Tombstone,
	tenancyOf,
} from "@plinth/resource";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ArtistSchema as ArtistV1Schema } from "../testdata/gen/acme/demo/v1/demo_pb.ts";
import { Artist, ArtistV1, album, artist, Label } from "./demo.fixture.ts";
import { connections, expectRefusal, startService, type TestService } from "./service.fixture.ts";

describe.each(connections)("the resource API, %s", (connection) => {
	let t: TestService;
	beforeEach(async () => {
		t = await startService(connection);
	});
	afterEach(() => t[Symbol.asyncDispose]());

	async function write(resource: Resource): Promise<Resource> {
		return present((await t.client.write({ resource })).resource);
	}

	async function read(id = idOf(Artist, "miles")): Promise<Resource> {
		return present((await t.client.read({ id })).resource);
	}

	describe("Write", () => {
		it("gives a new resource a uid, a generation and a version, and returns it as stored", async () => {
			const written = await write(artist("miles"));
			expect(isUlid(written.id?.uid ?? "")).toBe(true);
			expect(isUlid(written.generation)).toBe(true);
			expect(written.version).toMatch(/^\d+$/);
			expect(await read()).toEqual(written);
		});

		it("replaces nothing where it must create, and says so", async () => {
			const stored = await write(artist("miles"));
			const again = t.client.write({ resource: artist("miles"), createOnly: true });
			await expectRefusal(again, Code.AlreadyExists, /^miles already exists/);
			expect(await read()).toEqual(stored);
		});

		it("creates once of many that must create", async () => {
			const tries = Array.from({ length: 8 }, () =>
				t.client.write({ resource: artist("miles"), createOnly: true }),
			);
			const settled = await Promise.allSettled(tries);
			expect(settled.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
			for (const each of settled) {
				if (each.status === "rejected") {
					expect(each.reason).toMatchObject({ code: Code.AlreadyExists });
				}
			}
		});

		it("fills in the default tenancy, in responses too", async () => {
			const resource = artist("miles");
			const { id } = await write({
				...resource,
				id: { ...present(resource.id), tenancy: tenancyOf() },
			});
			expect(id?.tenancy).toMatchObject({ partition: "default", namespace: "default" });
		});

		it("runs the mutate hook before the resource is stored", async () => {
			const written = await write(artist("miles"));
			expect(decode(Artist, written).data.genre).toBe("jazz");
		});

		it("leaves the caller's own object as it was", async () => {
			const mine = artist("miles");
			const before = structuredClone(mine);
			await write(mine);
			expect(mine).toEqual(before);
			expect(Object.isFrozen(mine.data)).toBe(false);
		});

		it("keeps the uid and changes generation and version of an existing resource", async () => {
			const first = await write(artist("miles"));
			const second = await write(artist("miles", {}, "rock"));
			expect(second.id?.uid).toBe(first.id?.uid);
			expect(second.generation).not.toBe(first.generation);
			expect(second.version).not.toBe(first.version);
		});

		it("replaces the stored group version", async () => {
			await write(artist("miles"));
			const v1 = resourceOf(ArtistV1, {
				id: idOf(ArtistV1, "miles"),
				data: create(ArtistV1Schema, { name: "miles" }),
			});
			await write(v1);
			expect((await read(idOf(ArtistV1, "miles"))).id?.type?.groupVersion).toBe("v1");
			await expectRefusal(
				read(),
				Code.InvalidArgument,
				'resource was requested with GroupVersion="v2", but stored with GroupVersion="v1"',
			);
		});

		it("gives an owner without a uid the uid of the one that is there", async () => {
			const owner = await write(artist("miles"));
			const owned = await write(album("blue", { owner: idOf(Artist, "miles") }));
			expect(owned.owner).toEqual(owner.id);
			const again = await write(album("blue", { owner: idOf(Artist, "miles") }));
			expect(again.owner).toEqual(owner.id);
		});

		it("carries status, mark and finalizers over where the caller knows no version", async () => {
			const first = await write(withMetadata(artist("miles"), { [finalizersKey]: "a" }));
			const status = create(StatusSchema, { observedGeneration: first.generation });
			await t.client.writeStatus({ id: present(first.id), key: "c", status });
			const second = await write(artist("miles", {}, "rock"));
			expect(Object.keys(second.status)).toEqual(["c"]);
			expect(second.metadata[finalizersKey]).toBe("a");
			const third = await write(withMetadata(artist("miles"), { [finalizersKey]: "" }));
			expect(third.metadata[finalizersKey]).toBe("");
		});

		it("keeps finalizers of others where a mutate hook adds one of its own", async () => {
			const namespace = (metadata: Record<string, string>) =>
				resourceOf(Namespace, { id: idOf(Namespace, "n"), metadata });
			await write(namespace({ [finalizersKey]: "mine" }));
			const again = await write(namespace({}));
			expect(again.metadata[finalizersKey]?.split(" ")).toContain("mine");
		});

		it("stores without a version over whatever came meanwhile", async () => {
			const writers = Array.from({ length: 5 }, (_, n) => write(artist("miles", {}, `g${n}`)));
			const versions = (await Promise.all(writers)).map((written) => written.version);
			expect(new Set(versions).size).toBe(5);
		});

		it("marks a resource that a caller gives a deletionTimestamp", async () => {
			const first = await write(withMetadata(artist("miles"), { [finalizersKey]: "a" }));
			const marked = withMetadata(first, { [deletionTimestampKey]: "2026-01-01T00:00:00Z" });
			await write(marked);
			expect((await read()).metadata).toMatchObject(marked.metadata);
		});

		it("deletes a marked resource with its last finalizer, and leaves a tombstone", async () => {
			const { id } = await write(withMetadata(artist("miles"), { [finalizersKey]: "a b" }));
			await t.client.delete({ id: present(id) });
			const halfway = await write(withMetadata(await read(), { [finalizersKey]: "b" }));
			const last = await write(withMetadata(halfway, { [finalizersKey]: "" }));
			expect(last.metadata[finalizersKey]).toBe("");
			await expectRefusal(read(), Code.NotFound, "resource not found");
			expect(await tombstones()).toHaveLength(1);
		});

		it("does not run hooks on what is marked, so that stricter rules do not hold it", async () => {
			const { id } = await write(withMetadata(artist("miles"), { [finalizersKey]: "a" }));
			await t.client.delete({ id: present(id) });
			const marked = await read();
			// The mutate hook would change this one, and the validate hook refuse it.
			await write(withMetadata(marked, { [finalizersKey]: "" }));
			await expectRefusal(read(), Code.NotFound, "resource not found");
		});

		it("creates a default namespace with a partition", async () => {
			await write(
				resourceOf(Partition, { id: idOf(Partition, "p"), data: create(PartitionSchema) }),
			);
			await write(artist("miles", { partition: "p" }));
			expect((await read(idOf(Namespace, "default", { partition: "p" }))).id?.name).toBe("default");
		});

		it("returns from MutateAndValidate what could be written next, and stores nothing", async () => {
			const { resource } = await t.client.mutateAndValidate({ resource: artist("miles") });
			expect(decode(Artist, present(resource)).data.genre).toBe("jazz");
			await expectRefusal(read(), Code.NotFound, "resource not found");
			const stored = await write(present(resource));
			const again = await t.client.mutateAndValidate({ resource: stored });
			expect(again.resource).toEqual(stored);
		});
	});

	async function tombstones(): Promise<readonly Resource[]> {
		const tenancy = { partition: "*", namespace: "*" };
		return (await t.client.list({ type: Tombstone.type, tenancy })).resources;
	}

	describe("WriteStatus", () => {
		it("changes the version and the one entry, and neither generation nor data", async () => {
			const before = await write(artist("miles"));
			const status = create(StatusSchema, { observedGeneration: before.generation });
			const { resource } = await t.client.writeStatus({ id: present(before.id), key: "c", status });
			const after = present(resource);
			expect(after.generation).toBe(before.generation);
			expect(after.version).not.toBe(before.version);
			expect(after.data).toEqual(before.data);
			expect(after.status.c?.updatedAt).toBeDefined();
			expect(await read()).toEqual(after);
		});
	});

	describe("Delete", () => {
		it("of what is missing, or of another uid, is no error and changes nothing", async () => {
			expect((await t.client.delete({ id: idOf(Artist, "miles") })).version).toBe("");
			const { id, version } = await write(artist("miles"));
			const other = { ...present(id), uid: "01ARZ3NDEKTSV4RRFFQ69G5FAV" };
			expect((await t.client.delete({ id: other })).version).toBe("");
			expect((await read()).version).toBe(version);
		});

		it("removes a resource and leaves a tombstone with its ID, in one commit", async () => {
			const { id } = await write(artist("miles"));
			const { version } = await t.client.delete({ id: present(id) });
			const [tombstone] = await tombstones();
			expect(tombstone?.version).toBe(version);
			expect(tombstone?.id?.name).toBe(`tombstone-miles-${id?.uid.toLowerCase()}`);
			expect(tombstone?.id?.tenancy).toEqual(id?.tenancy);
			expect(decode(Tombstone, present(tombstone)).data).toEqual(
				create(TombstoneSchema, { owner: present(id) }),
			);
		});

		it("leaves the tombstone of a cluster scoped resource without a tenancy, and none of a tombstone", async () => {
			await write(resourceOf(Label, { id: idOf(Label, "blue-note") }));
			await t.client.delete({ id: idOf(Label, "blue-note") });
			const [tombstone] = await tombstones();
			expect(tombstone?.id?.tenancy).toMatchObject({ partition: "", namespace: "" });
			await t.client.delete({ id: present(tombstone?.id) });
			expect(await tombstones()).toEqual([]);
		});

		it("marks a resource with finalizers, once", async () => {
			const { id, generation } = await write(
				withMetadata(artist("miles"), { [finalizersKey]: "a" }),
			);
			await t.client.delete({ id: present(id) });
			const marked = await read();
			expect(marked.metadata[deletionTimestampKey]).toMatch(/^\d{4}-\d\d-\d\dT/);
			expect(marked.generation).not.toBe(generation);
			expect((await t.client.delete({ id: present(id) })).version).toBe("");
			expect(await read()).toEqual(marked);
		});

		it("checks and changes nothing in a dry run", async () => {
			const { id, version } = await write(artist("miles"));
			expect((await t.client.delete({ id: present(id), dryRun: true })).version).toBe("");
			expect((await read()).version).toBe(version);
			expect(await tombstones()).toEqual([]);
		});
	});

	describe("List", () => {
		it("returns one group version of one tenancy and name prefix, in order", async () => {
			await write(artist("miles"));
			await write(artist("john"));
			await write(artist("max"));
			await write(
				resourceOf(ArtistV1, {
					id: idOf(ArtistV1, "mingus"),
					data: create(ArtistV1Schema, { name: "mingus" }),
				}),
			);
			const { resources, version } = await t.client.list({
				type: Artist.type,
				tenancy: {},
				namePrefix: "m",
			});
			expect(names(resources)).toEqual(["max", "miles"]);
			expect(version).toMatch(/^\d+$/);
		});

		it("takes * for all, also for units that the scope lacks", async () => {
			await namespace("n");
			await write(artist("miles"));
			await write(artist("john", { namespace: "n" }));
			await write(resourceOf(Label, { id: idOf(Label, "l") }));
			const all = { partition: "*", namespace: "*" };
			expect(names((await t.client.list({ type: Artist.type, tenancy: all })).resources)).toEqual([
				"miles",
				"john",
			]);
			expect(names((await t.client.list({ type: Label.type, tenancy: all })).resources)).toEqual([
				"l",
			]);
		});

		it("returns nothing for a missing tenancy", async () => {
			const { resources } = await t.client.list({
				type: Artist.type,
				tenancy: { namespace: "nope" },
			});
			expect(resources).toEqual([]);
		});

		it("pages over one snapshot, whatever is written meanwhile", async () => {
			for (const name of ["a", "b", "c", "d", "e"]) {
				await write(artist(name));
			}
			const request = { type: Artist.type, tenancy: {}, pageSize: 2 };
			const first = await t.client.list(request);
			await write(artist("aa"));
			await t.client.delete({ id: idOf(Artist, "d") });
			const second = await t.client.list({ ...request, pageToken: first.nextPageToken });
			const third = await t.client.list({ ...request, pageToken: second.nextPageToken });
			expect([first, second, third].map((page) => names(page.resources))).toEqual([
				["a", "b"],
				["c", "d"],
				["e"],
			]);
			expect(third.nextPageToken).toBe("");
			expect(new Set([first, second, third].map((page) => page.version)).size).toBe(1);
			// A page can be requested again.
			const repeated = await t.client.list({ ...request, pageToken: first.nextPageToken });
			expect(repeated.resources).toEqual(second.resources);
		});
	});

	describe("ListByOwner", () => {
		it("returns what exactly that incarnation owns, of all types", async () => {
			const first = await write(artist("miles"));
			await write(album("blue", { owner: present(first.id) }));
			await write({ ...artist("son"), owner: present(first.id) });
			await write(album("other"));
			const owned = await t.client.listByOwner({ owner: present(first.id) });
			expect(names(owned.resources).sort()).toEqual(["blue", "son"]);
			await t.client.delete({ id: present(first.id) });
			const second = await write(artist("miles"));
			expect((await t.client.listByOwner({ owner: present(second.id) })).resources).toEqual([]);
		});
	});

	describe("ListByOwner of a type that is no longer registered", () => {
		const type = { group: "gone", groupVersion: "v1", kind: "Orchestra" };

		it("returns what it owns, in the tenancy as it is given", async () => {
			const owners = [{}, { partition: "default", namespace: "default" }].map((tenancy, index) =>
				create(IDSchema, { type, tenancy, name: "nrg", uid: `uid-${index}` }),
			);
			for (const [index, owner] of owners.entries()) {
				const owned = album(`of-${index}`, { owner });
				const id = { ...present(owned.id), uid: `uid-of-album-${index}` };
				await t.backend.commit([{ op: "put", resource: { ...owned, id }, expectedVersion: "" }]);
			}
			for (const [index, owner] of owners.entries()) {
				const { resources } = await t.client.listByOwner({ owner });
				expect(names(resources)).toEqual([`of-${index}`]);
			}
			await expectRefusal(
				t.client.listByOwner({ owner: { type, name: "nrg" } }),
				Code.InvalidArgument,
				"owner uid is required",
			);
		});
	});

	describe("WatchList", () => {
		it("sends the end of the snapshot at once for an empty type", async () => {
			await using watch = follow({ type: Artist.type });
			expect(await watch.take(1)).toEqual(["end"]);
		});

		it("sends what there is, the end with a version, and then each change", async () => {
			await write(artist("a"));
			await write(artist("b"));
			await using watch = follow({ type: Artist.type });
			expect(await watch.take(3)).toEqual(["+a", "+b", "end"]);
			expect(watch.version).toMatch(/^\d+$/);
			await write(artist("c"));
			await t.client.delete({ id: idOf(Artist, "a") });
			expect(await watch.take(2)).toEqual(["+c", "-a"]);
		});

		it("resumes after a version with what came later, each once", async () => {
			await write(artist("a"));
			const version = await (async () => {
				await using watch = follow({ type: Artist.type });
				await watch.take(2);
				return watch.version;
			})();
			await write(artist("b"));
			await t.client.delete({ id: idOf(Artist, "a") });
			await using resumed = follow({ type: Artist.type, afterVersion: version });
			expect(await resumed.take(2)).toEqual(["+b", "-a"]);
		});

		it("sends what leaves the view as deleted, and nothing of what was never in it", async () => {
			await write(artist("a"));
			await using watch = follow({ type: Artist.type });
			expect(await watch.take(2)).toEqual(["+a", "end"]);
			const v1 = resourceOf(ArtistV1, {
				id: idOf(ArtistV1, "a"),
				data: create(ArtistV1Schema, { name: "a" }),
			});
			await write(v1);
			await write(v1);
			await t.client.delete({ id: idOf(ArtistV1, "a") });
			await write(artist("b"));
			expect(await watch.take(2)).toEqual(["-a", "+b"]);
		});

		it("filters by tenancy and prefix", async () => {
			await namespace("n");
			await using watch = follow({
				type: Artist.type,
				tenancy: { namespace: "n" },
				namePrefix: "m",
			});
			expect(await watch.take(1)).toEqual(["end"]);
			await write(artist("miles"));
			await write(artist("john", { namespace: "n" }));
			await write(artist("max", { namespace: "n" }));
			expect(await watch.take(1)).toEqual(["+max"]);
		});
	});

	async function namespace(name: string): Promise<void> {
		await write(
			resourceOf(Namespace, { id: idOf(Namespace, name), data: create(NamespaceSchema) }),
		);
	}

	/** A watch whose events are short strings. */
	function follow(request: object): AsyncDisposable & {
		take(count: number): Promise<readonly string[]>;
		readonly version: string;
	} {
		const controller = new AbortController();
		const events = t.client
			.watchList(request as WatchListRequest, { signal: controller.signal })
			[Symbol.asyncIterator]();
		let version = "";
		return {
			async take(count) {
				const taken: string[] = [];
				while (taken.length < count) {
					const { value, done } = await events.next();
					if (done) {
						throw new Error("the watch ended");
					}
					version = value.version || version;
					taken.push(brief(value));
				}
				return taken;
			},
			get version() {
				return version;
			},
			async [Symbol.asyncDispose]() {
				controller.abort();
				await events.next().catch(() => {});
			},
		};
	}
});

function brief({ event }: WatchEvent): string {
	switch (event.case) {
		case "upsert":
			return `+${event.value.resource?.id?.name}`;
		case "delete":
			return `-${event.value.resource?.id?.name}`;
		case "endOfSnapshot":
			return "end";
		default:
			return event.case ?? "nothing";
	}
}

function withMetadata(resource: Resource, metadata: Record<string, string>): Resource {
	return { ...resource, metadata: { ...resource.metadata, ...metadata } };
}

function names(resources: readonly Resource[]): string[] {
	return resources.map((resource) => resource.id?.name ?? "");
}

function present<T>(value: T | undefined): T {
	if (value === undefined) {
		throw new Error("expected to be there");
	}
	return value;
}

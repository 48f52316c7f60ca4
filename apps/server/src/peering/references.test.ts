import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Import } from "@plinth/peering";
import type { Resource } from "@plinth/proto";
import {
	addFinalizer,
	decodeShared,
	idOf,
	isMarkedForDeletion,
	referenceTo,
	removeFinalizer,
	resourceOf,
} from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { FanSchema } from "../../testdata/gen/music/v1/fan_pb.ts";
import { Artist, artist, Fan, fansModule } from "../../testdata/music.ts";
import { outcome } from "../callers.fixture.ts";
import { eventually, importing, type TestCluster } from "./two-clusters.fixture.ts";

/** The copy of an artist of `west`. */
const copied = (name: string) =>
	referenceTo({ type: Artist.type, tenancy: { partition: "west", namespace: "default" }, name });

function fan(name: string, init: MessageInitShape<typeof FanSchema>) {
	return resourceOf(Fan, { id: idOf(Fan, name), data: create(FanSchema, init) });
}

/** `east`, which has copies of the artists of `west`, has fans. */
async function imported(...names: readonly string[]) {
	const clusters = await importing({}, { modules: [fansModule()] });
	for (const name of names) {
		await clusters.west.write(artist(name));
		await eventually(() => clusters.east.artist(name, "west"));
	}
	return clusters;
}

/** What a fan references; `undefined` if there is no such fan. */
async function read({ server }: TestCluster, name: string) {
	const { resources } = await server.client.list({ type: Fan.type, tenancy: {}, namePrefix: name });
	const [found] = resources;
	return found && decodeShared(Fan, found).data;
}

/** Keeps a fan that is deleted until `releaseFan`. */
function withFinalizer(resource: Resource): Resource {
	addFinalizer(resource, "tests/kept");
	return resource;
}

async function releaseFan({ server }: TestCluster, name: string): Promise<void> {
	await eventually(async () => {
		const { resource } = await server.client.read({ id: idOf(Fan, name) });
		if (resource !== undefined) {
			removeFinalizer(resource, "tests/kept");
			await server.client.write({ resource });
		}
	});
}

async function isMarked(cluster: TestCluster, name: string): Promise<boolean> {
	const copy = await cluster.artist(name, "west");
	return copy !== undefined && isMarkedForDeletion(copy);
}

describe("a reference to a copy", { timeout: 300_000 }, () => {
	it("is cleared, or its resource deleted, once the original is deleted", async () => {
		const { west, east } = await imported("miles", "ella");
		await east.write(fan("anna", { likes: copied("miles") }));
		await east.write(fan("bert", { livesFor: copied("miles") }));
		await east.write(fan("carl", { likes: copied("ella") }));
		await west.server.client.delete({ id: idOf(Artist, "miles") });
		await eventually(async () => expect(await east.artists("west")).toEqual(["default/ella=jazz"]));
		await eventually(async () => {
			expect((await read(east, "anna"))?.likes).toBeUndefined();
			expect(await read(east, "bert")).toBeUndefined();
		});
		expect((await read(east, "carl"))?.likes?.name).toBe("ella");
	});

	it("follows no other incarnation of the original", async () => {
		const { west, east } = await imported("miles");
		const before = await east.artist("miles", "west");
		await east.write(fan("anna", { likes: copied("miles") }));
		await west.server.client.delete({ id: idOf(Artist, "miles") });
		await west.write(artist("miles", "funk"));
		await eventually(async () =>
			expect(await east.artists("west")).toEqual(["default/miles=funk"]),
		);
		expect((await east.artist("miles", "west"))?.id?.uid).not.toBe(before?.id?.uid);
		await eventually(async () => expect((await read(east, "anna"))?.likes).toBeUndefined());
	});

	it("stays when the copy changes", async () => {
		const { west, east } = await imported("miles");
		await east.write(fan("anna", { likes: copied("miles"), livesFor: copied("miles") }));
		await west.write(artist("miles", "funk"));
		await eventually(async () =>
			expect(await east.artists("west")).toEqual(["default/miles=funk"]),
		);
		expect((await read(east, "anna"))?.likes?.name).toBe("miles");
	});

	it("does not hold up the end of the import", async () => {
		const { east } = await imported("miles", "ella");
		await east.write(fan("anna", { likes: copied("miles") }));
		await east.write(fan("bert", { livesFor: copied("ella") }));
		await east.server.client.delete({ id: idOf(Import, "artists") });
		await eventually(async () =>
			expect(await outcome(east.artist("miles", "west"))).toBe(
				"NotFound: partition not found: west",
			),
		);
		await eventually(async () => {
			expect((await read(east, "anna"))?.likes).toBeUndefined();
			expect(await read(east, "bert")).toBeUndefined();
		});
	});

	it("holds up no other copies while what is deleted with the copy has a finalizer", async () => {
		const { west, east } = await imported("miles");
		await east.write(withFinalizer(fan("bert", { livesFor: copied("miles") })));
		await west.server.client.delete({ id: idOf(Artist, "miles") });
		await eventually(async () => expect(await isMarked(east, "miles")).toBe(true));
		await west.write(artist("ella"));
		await eventually(() => east.artist("ella", "west"));
		await releaseFan(east, "bert");
		await eventually(async () => expect(await east.artists("west")).toEqual(["default/ella=jazz"]));
		expect(await read(east, "bert")).toBeUndefined();
	});

	it("holds up no other import when its own is removed", async () => {
		const { west, east } = await imported("miles");
		await east.write(withFinalizer(fan("bert", { livesFor: copied("miles") })));
		await east.server.client.delete({ id: idOf(Import, "artists") });
		await eventually(async () => expect(await isMarked(east, "miles")).toBe(true));
		await east.import("again", { peer: "west", export: "artists", partition: "again" });
		await west.write(artist("ella"));
		await eventually(() => east.artist("ella", "again"));
		expect(await isMarked(east, "miles")).toBe(true);
		await releaseFan(east, "bert");
		await eventually(async () =>
			expect(await outcome(east.artist("miles", "west"))).toBe(
				"NotFound: partition not found: west",
			),
		);
	});

	it("is refused if the copy could not be removed because of it", async () => {
		const { east } = await imported("miles");
		expect(await outcome(east.write(fan("anna", { manages: copied("miles") })))).toBe(
			"FailedPrecondition: manages references music.Artist west/default/miles, which is a copy of a resource of another cluster: only CASCADE and UNSET references to it are possible",
		);
	});
});

import { clone, create } from "@bufbuild/protobuf";
import {
	Condition_State,
	createResourceServiceCloningClient,
	ReadResponseSchema,
	ResourceSchema,
} from "@plinth/proto";
import { decode, idOf } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { Album, Artist, demo, text } from "../demo-types.fixture.ts";
import { FakeService } from "../fake-service.fixture.ts";
import {
	readResource,
	writeIfDifferent,
	writeResource,
	writeStatusIfDifferent,
} from "./resource-helpers.ts";

function setUp() {
	const service = new FakeService();
	return { service, client: createResourceServiceCloningClient(service.client) };
}

const id = idOf(Artist, "miles");

describe("readResource", () => {
	it("returns undefined if it does not exist", async () => {
		const { service, client } = setUp();
		expect(await readResource(client, Artist, id)).toBeUndefined();
		service.put(demo(Artist, "miles", "trumpet"));
		expect((await readResource(client, Artist, id))?.data.value).toBe("trumpet");
	});
});

describe("writeResource", () => {
	it("uses compare-and-swap if a version is given", async () => {
		const { client } = setUp();
		const first = await writeResource(client, Artist, { id, data: text(Artist, "trumpet") });
		const { version } = first.resource;
		await writeResource(client, Artist, { id, data: text(Artist, "piano"), version });
		await expect(
			writeResource(client, Artist, { id, data: text(Artist, "x"), version }),
		).rejects.toThrow("CAS operation failed");
	});
});

describe("writeIfDifferent", () => {
	it("writes what is missing or differs, and nothing else", async () => {
		const { service, client } = setUp();
		const write = async (value: string) => {
			const stored = service.stored(id);
			const existing = stored && decode(Artist, stored);
			const result = await writeIfDifferent(client, Artist, existing, {
				id,
				data: text(Artist, value),
			});
			return result.changed;
		};
		expect(await write("trumpet")).toBe(true);
		expect(await write("trumpet")).toBe(false);
		expect(await write("piano")).toBe(true);
		expect(service.writes.length).toBe(2);
	});

	it("keeps fields that the caller omits", async () => {
		const { service, client } = setUp();
		const owner = service.put(demo(Artist, "owner")).id!;
		const metadata = { finalizers: "a b", color: "blue" };
		const stored = service.put(demo(Album, "blue", "1", { owner, metadata }));
		const init = { id: idOf(Album, "blue"), data: text(Album, "2") };
		await writeIfDifferent(client, Album, decode(Album, stored), init);
		const kept = service.stored(init.id);
		expect(kept?.owner?.name).toBe("owner");
		expect(kept?.metadata).toEqual(metadata);
		expect(kept?.version).toBe("3");
	});

	it("replaces the metadata that is given, but for finalizers and the deletion mark", async () => {
		const { service, client } = setUp();
		const stored = service.put(
			demo(Artist, "miles", "", { metadata: { finalizers: "a", color: "blue" } }),
		);
		const init = { id, metadata: { color: "green" } };
		const result = await writeIfDifferent(client, Artist, decode(Artist, stored), init);
		expect(result.resource.metadata).toEqual({ finalizers: "a", color: "green" });
		const again = await writeIfDifferent(client, Artist, decode(Artist, result.resource), init);
		expect(again.changed).toBe(false);
	});

	it("replaces only the version that it has compared with", async () => {
		const { service, client } = setUp();
		const stale = decode(Artist, service.put(demo(Artist, "miles", "1")));
		service.put(demo(Artist, "miles", "2"));
		await expect(
			writeIfDifferent(client, Artist, stale, { id, data: text(Artist, "3") }),
		).rejects.toThrow("CAS operation failed");
	});

	it("only creates a missing resource, and replaces nothing that another writer has created", async () => {
		const { service, client } = setUp();
		service.put(demo(Artist, "miles", "1"));
		await expect(
			writeIfDifferent(client, Artist, undefined, { id, data: text(Artist, "2") }),
		).rejects.toThrow("already exists");
		const stored = service.stored(id);
		expect(stored && decode(Artist, stored).data.value).toBe("1");
	});

	it("is content with what another writer has created if nothing differs", async () => {
		const { service, client } = setUp();
		const { version } = service.put(demo(Artist, "miles", "1"));
		const init = { id, data: text(Artist, "1") };
		const result = await writeIfDifferent(client, Artist, undefined, init);
		expect(result).toMatchObject({ changed: false, resource: { version } });
		expect(service.stored(id)?.version).toBe(version);
	});

	it("compares with what is stored now, whatever eventually consistent reads return", async () => {
		const { service, client } = setUp();
		service.put(demo(Artist, "miles", "2"));
		const lagging: typeof client = {
			...client,
			read: async (request, options) => {
				if (new Headers(options?.headers).get("x-plinth-consistency-mode") !== "consistent") {
					return create(ReadResponseSchema, { resource: demo(Artist, "miles", "1") });
				}
				return client.read(request, options);
			},
		};
		const write = (value: string) =>
			writeIfDifferent(lagging, Artist, undefined, { id, data: text(Artist, value) });
		await expect(write("1")).rejects.toThrow("already exists");
		expect((await write("2")).changed).toBe(false);
	});

	it("treats an owner with another name or uid as a difference", async () => {
		const { service, client } = setUp();
		const owner = service.put(demo(Artist, "owner")).id!;
		const stored = decode(Album, service.put(demo(Album, "blue", "", { owner })));
		const blue = idOf(Album, "blue");
		const write = async (name: string, uid: string) =>
			(
				await writeIfDifferent(client, Album, stored, {
					id: blue,
					owner: idOf(Artist, name, {}, uid),
				})
			).changed;
		expect(await write("owner", "")).toBe(false);
		expect(await write("owner", owner.uid)).toBe(false);
		expect(await write("owner", "OTHER")).toBe(true);
	});
});

describe("writeStatusIfDifferent", () => {
	it("writes a status once for each generation and each set of conditions", async () => {
		const { service, client } = setUp();
		service.put(demo(Artist, "miles"));
		const write = async (state: Condition_State) => {
			const stored = service.stored(id);
			if (stored === undefined) {
				throw new Error("not stored");
			}
			const status = { conditions: [{ type: "Ready", state }] };
			return (await writeStatusIfDifferent(client, stored, "artist", status)).changed;
		};
		expect(await write(Condition_State.TRUE)).toBe(true);
		expect(await write(Condition_State.TRUE)).toBe(false);
		expect(await write(Condition_State.FALSE)).toBe(true);
		const stored = service.stored(id);
		service.put(clone(ResourceSchema, stored ?? demo(Artist, "miles")));
		expect(await write(Condition_State.FALSE)).toBe(true);
	});
});

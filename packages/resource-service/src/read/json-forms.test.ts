import { create, toBinary, toJson } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
	type ID,
	IDSchema,
	ListByOwnerRequestSchema,
	ReadRequestSchema,
	type Resource,
	ResourceService,
} from "@plinth/proto";
import { idOf, Namespace, Partition, resourceOf, Tombstone, TypeRegistry } from "@plinth/resource";
import { systemRuntime } from "@plinth/runtime";
import { createMemoryBackend, type StorageBackend } from "@plinth/storage";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { RecordingSchema } from "../../testdata/gen/acme/demo/v2/demo_pb.ts";
import { insecureAllowAll } from "../access/open-access.ts";
import { Artist, artist, demoTypes, Recording } from "../demo.fixture.ts";
import { enveloped, openPort, type Port } from "../fuzz/port.fixture.ts";
import { unregistered } from "../fuzz/run-fuzz.fixture.ts";
import { createResourceService } from "../resource-service.ts";
import { ensureDefaultTenancy } from "../tenancy/tenancy-defaults.ts";

describe("data that JSON has no form for", () => {
	let backend: StorageBackend;
	let port: Port;
	let owner: Resource;
	beforeEach(async () => {
		backend = createMemoryBackend();
		await ensureDefaultTenancy(backend, systemRuntime);
		const registry = new TypeRegistry([Partition, Namespace, Tombstone, ...demoTypes]);
		const authorizer = insecureAllowAll;
		port = await openPort(createResourceService({ backend, registry, authorizer }), registry);
		owner = artist("miles");
		owner.id = { ...idOf(Artist, "miles"), uid: "01ARZ3NDEKTSV4RRFFQ69G5FAV" };
		for (const resource of [owner, ...unregistered(owner)]) {
			await backend.commit([{ op: "put", resource, expectedVersion: "" }]);
		}
	});
	afterEach(async () => {
		await port[Symbol.asyncDispose]();
		await backend.close();
	});

	const path = (method: string) => `/${ResourceService.typeName}/${method}`;

	const json = (id: ID | undefined) => id && toJson(IDSchema, id);

	function sendJson(method: string, body: unknown) {
		const headers = { "content-type": "application/json" };
		return port.send({ path: path(method), headers, body: Buffer.from(JSON.stringify(body)) });
	}

	const notRegistered = {
		"@type": "type.googleapis.com/google.protobuf.Struct",
		value: {
			type: "acme.other.v1.Thing",
			error: 'type "acme.other.v1.Thing" is not registered on this server',
		},
	};

	it("is shown as its error, and the rest of the resource is there", async () => {
		const { code, body } = await sendJson("ListByOwner", { owner: json(owner.id) });
		expect(code).toBe("ok");
		const { resources } = JSON.parse(body.toString());
		expect(resources).toHaveLength(2);
		expect(resources[1]).toMatchObject({
			id: { name: "left-behind", type: { group: "other", kind: "Thing" } },
			version: expect.any(String),
			data: notRegistered,
		});
	});

	it("is shown so over GET too", async () => {
		const message = encodeURIComponent(JSON.stringify({ owner: json(owner.id) }));
		const query = `connect=v1&encoding=json&message=${message}`;
		const response = await port.send({ path: `${path("ListByOwner")}?${query}`, headers: {} });
		expect(response.code).toBe("ok");
		expect(JSON.parse(response.body.toString()).resources[1].data).toEqual(notRegistered);
	});

	it("is shown whole to callers that speak binary", async () => {
		const headers = { "content-type": "application/proto" };
		const request = create(ListByOwnerRequestSchema, {
			...(owner.id && { owner: owner.id }),
		});
		const body = toBinary(ListByOwnerRequestSchema, request);
		const response = await port.send({ path: path("ListByOwner"), headers, body });
		expect(response.body.toString("latin1")).toContain("acme.other.v1.Thing");
	});

	it("shows what its type can't decode in lists, as its error", async () => {
		const id = { ...idOf(Artist, "broken"), uid: "01ARZ3NDEKTSV4RRFFQ69G5FAX" };
		const broken = resourceOf(Artist, { id });
		if (broken.data !== undefined) {
			broken.data.value = Uint8Array.of(0x0a, 0x7f, 1);
		}
		await backend.commit([{ op: "put", resource: broken, expectedVersion: "" }]);
		const { code, body } = await sendJson("List", {
			type: { group: "demo", groupVersion: "v2", kind: "Artist" },
			tenancy: { partition: "default", namespace: "default" },
		});
		expect(code).toBe("ok");
		const { resources } = JSON.parse(body.toString());
		expect(resources.map((each: Resource) => each.id?.name)).toEqual([
			"broken",
			"left-behind",
			"miles",
		]);
		expect(resources[0].data.value).toEqual({
			type: Artist.schema.typeName,
			error: expect.stringContaining(`can't be decoded as ${Artist.schema.typeName}`),
		});
		expect(resources[2].data).toHaveProperty(
			"@type",
			`type.googleapis.com/${Artist.schema.typeName}`,
		);
	});

	it("is not lost when a caller writes back what it was shown", async () => {
		const id = idOf(Recording, "take");
		const data = create(RecordingSchema, { takenAt: timestampFromMs(1e18) });
		const uid = "01ARZ3NDEKTSV4RRFFQ69G5FAW";
		const resource = resourceOf(Recording, { id: { ...id, uid }, data });
		await backend.commit([{ op: "put", resource, expectedVersion: "" }]);
		const shown = JSON.parse((await sendJson("Read", { id: json(id) })).body.toString()).resource;
		expect(shown.data).toMatchObject({
			value: { type: "acme.demo.v2.Recording", error: expect.stringContaining("no JSON form") },
		});
		const response = await sendJson("Write", { resource: shown });
		expect(response.code).toBe("invalid_argument");
		expect(response.body.toString()).toContain("resource.data is of wrong type");
		expect((await backend.read(id)).data).toEqual(resource.data);
	});
});

describe("errors of messages that can't be parsed", () => {
	it("are the caller's, over Connect and gRPC, unary and streaming", async () => {
		const registry = new TypeRegistry(demoTypes);
		const backend = createMemoryBackend();
		const authorizer = insecureAllowAll;
		await using port = await openPort(
			createResourceService({ backend, registry, authorizer }),
			registry,
		);
		const message = toBinary(
			ReadRequestSchema,
			create(ReadRequestSchema, { id: idOf(Artist, "a") }),
		);
		const cut = message.slice(0, -1);
		const surrogate = Buffer.from('{"id":"\\ud800"}');
		for (const [method, type, bytes] of [
			["Read", "application/proto", cut],
			["Read", "application/grpc", enveloped(cut)],
			["Read", "application/grpc+json", enveloped(surrogate)],
			["WatchList", "application/connect+proto", enveloped(cut)],
			["WatchList", "application/grpc", enveloped(cut)],
			["WatchList", "application/grpc+json", enveloped(surrogate)],
			["WatchList", "application/grpc", enveloped(message, 1)],
		] as const) {
			const path = `/${ResourceService.typeName}/${method}`;
			const { code } = await port.send({ path, headers: { "content-type": type }, body: bytes });
			expect([method, type, code]).toEqual([method, type, "invalid_argument"]);
		}
		await backend.close();
	});
});

import { create } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import {
	IDSchema,
	NamespaceSchema,
	type Resource,
	ResourceSchema,
	StatusSchema,
} from "@plinth/proto";
import {
	allowed,
	defineType,
	denied,
	idOf,
	Namespace,
	needsResource,
	resourceOf,
} from "@plinth/resource";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SecretSchema } from "../../testdata/gen/acme/demo/v2/demo_pb.ts";
import { Artist, album, artist, Secret } from "../demo.fixture.ts";
import { connections, expectRefusal, startService, type TestService } from "../service.fixture.ts";
import { PolicyAuthorizer } from "./policy-authorizer.ts";

/** Its data decides who may read it, policies who may write it. */
const Open = defineType(SecretSchema, {
	authorize: {
		read: ({ subject }, _id, secret) =>
			secret === undefined
				? needsResource
				: secret.data.reader === subject
					? allowed
					: denied(`${subject} is not ${secret.data.reader}`),
	},
});

describe.each(connections)("authorization, %s", (connection) => {
	let t: TestService;
	let authorizer: PolicyAuthorizer;
	beforeEach(async () => {
		authorizer = new PolicyAuthorizer();
		t = await startService(connection, { authorizer });
		authorizer.grant("admin", { subject: "admin", rules: [{ operations: ["*"] }] });
		authorizer.grant("reader", {
			subject: "reader",
			rules: [{ operations: ["operator:read"], type: "demo.*", namespace: "default" }],
		});
		authorizer.grant("prefix", {
			subject: "prefix",
			rules: [{ operations: ["operator:read", "operator:write"], namePrefix: "my-" }],
		});
		authorizer.grant("nobody", { subject: "nobody", rules: [] });
		await as("admin").write(
			resourceOf(Namespace, { id: idOf(Namespace, "n"), data: create(NamespaceSchema) }),
		);
		await as("admin").write(artist("my-miles"));
		await as("admin").write(artist("john", { namespace: "n" }));
	});
	afterEach(() => t[Symbol.asyncDispose]());

	function as(token: string) {
		const options = { headers: { authorization: `Bearer ${token}` } };
		return {
			write: (resource: Resource) => t.client.write({ resource }, options),
			read: (id = idOf(Artist, "my-miles")) => t.client.read({ id }, options),
			delete: (id = idOf(Artist, "my-miles")) => t.client.delete({ id }, options),
			list: async (type: Pick<typeof Artist, "type"> = Artist) =>
				(
					await t.client.list(
						{ type: type.type, tenancy: { partition: "*", namespace: "*" } },
						options,
					)
				).resources.map((resource) => resource.id?.name),
			watch: (signal: AbortSignal) =>
				t.client.watchList({ type: Artist.type }, { ...options, signal }),
		};
	}

	it("takes a token from either header, and refuses none, a wrong and a malformed one", async () => {
		const read = (headers: Record<string, string>) =>
			t.client.read({ id: idOf(Artist, "my-miles") }, { headers });
		await read({ "x-plinth-token": "admin" });
		await read({ authorization: "bearer admin" });
		await expectRefusal(read({}), Code.Unauthenticated, /^a token is required/);
		await expectRefusal(
			read({ authorization: "Bearer nope" }),
			Code.Unauthenticated,
			"the token is not known",
		);
		await expectRefusal(
			read({ authorization: "admin" }),
			Code.Unauthenticated,
			"authorization must be: Bearer <token>",
		);
	});

	it("denies with the authorizer's message, before it looks whether anything exists", async () => {
		const message = "nobody lacks operator:read on demo.v2.Artist";
		await expectRefusal(as("nobody").read(), Code.PermissionDenied, message);
		await expectRefusal(
			as("nobody").read(idOf(Artist, "x", { namespace: "nope" })),
			Code.PermissionDenied,
			message,
		);
		await expectRefusal(
			as("reader").write(artist("x", { namespace: "nope" })),
			Code.PermissionDenied,
			"reader lacks operator:write on demo.v2.Artist",
		);
		await expectRefusal(as("reader").delete(), Code.PermissionDenied, /lacks operator:write/);
		await expectRefusal(as("nobody").list(), Code.PermissionDenied, message);
	});

	it("tells nothing of an owner that the caller may not read", async () => {
		authorizer.grant("writer", {
			subject: "writer",
			rules: [{ operations: ["*"], type: "demo.v2.Album" }],
		});
		for (const name of ["my-miles", "not-there"]) {
			await expectRefusal(
				as("writer").write(album("blue", { owner: idOf(Artist, name) })),
				Code.PermissionDenied,
				"writer lacks operator:read on demo.v2.Artist",
			);
		}
	});

	it("takes operator:reference on an owner of another namespace, whether or not it is there", async () => {
		authorizer.grant("owns", {
			subject: "owns",
			rules: [
				{ operations: ["*"], type: "demo.v2.Album" },
				{ operations: ["operator:read"], type: "demo.v2.Artist" },
			],
		});
		for (const name of ["john", "not-there"]) {
			const blue = album("blue", { owner: idOf(Artist, name, { namespace: "n" }) });
			await expectRefusal(
				as("owns").write(blue),
				Code.PermissionDenied,
				"owns lacks operator:reference on demo.v2.Artist",
			);
		}
		await as("owns").write(album("blue", { owner: idOf(Artist, "my-miles") }));
		await as("admin").write(album("red", { owner: idOf(Artist, "john", { namespace: "n" }) }));
		// What is stored is not decided on again.
		await as("owns").write(album("red", { owner: idOf(Artist, "john", { namespace: "n" }) }));
	});

	it("asks the hooks of an owner's type, with the owner where they need it", async () => {
		const secret = (name: string, reader: string) =>
			resourceOf(Secret, { id: idOf(Secret, name), data: create(SecretSchema, { reader }) });
		await as("admin").write(secret("of-admin", "admin"));
		authorizer.grant("writer", {
			subject: "writer",
			rules: [{ operations: ["*"], type: "demo.v2.Album" }],
		});
		const owned = (uid = "") => album("blue", { owner: idOf(Secret, "of-admin", {}, uid) });
		const { resource } = await t.client.read(
			{ id: idOf(Secret, "of-admin") },
			{ headers: { authorization: "Bearer admin" } },
		);
		for (const uid of ["", resource?.id?.uid ?? ""]) {
			await expectRefusal(
				as("writer").write(owned(uid)),
				Code.PermissionDenied,
				"writer is not admin",
			);
		}
		await as("admin").write(owned());
	});

	it("lists by an owner only what who may read the owner may list", async () => {
		const { resource } = await as("admin").read(idOf(Artist, "john", { namespace: "n" }));
		const owner = resource?.id ?? idOf(Artist, "john");
		await expectRefusal(
			t.client.listByOwner({ owner }, { headers: { authorization: "Bearer prefix" } }),
			Code.PermissionDenied,
			"prefix lacks operator:read on demo.v2.Artist",
		);
	});

	it("returns only id, version and generation to a writer that may not read", async () => {
		authorizer.grant("blind", {
			subject: "blind",
			rules: [{ operations: ["operator:write"], type: "demo.*" }],
		});
		const { resource: before } = await as("admin").read();
		if (before?.id === undefined) {
			throw new Error("the artist is not there");
		}
		const options = { headers: { authorization: "Bearer blind" } };
		const status = { observedGeneration: before.generation };
		const responses = [
			await t.client.mutateAndValidate({ resource: artist("my-miles") }, options),
			await t.client.mutateAndValidate({ resource: artist("new") }, options),
			await t.client.writeStatus({ id: before.id, key: "k", status }, options),
			await t.client.write({ resource: artist("my-miles", {}, "rock") }, options),
			await t.client.write({ resource: artist("new") }, options),
		];
		for (const { resource } of responses) {
			const { id, version = "", generation = "" } = resource ?? {};
			expect(resource).toEqual(create(ResourceSchema, { ...(id && { id }), version, generation }));
			expect(id?.name).toMatch(/^(my-miles|new)$/);
		}
		expect(responses[0]?.resource).toMatchObject({
			id: { uid: before.id.uid },
			version: before.version,
			generation: before.generation,
		});
		const { resource: after } = await as("admin").read();
		expect(after?.status).toHaveProperty("k");
		expect(responses[3]?.resource?.version).toBe(after?.version);
		const { resource: seen } = await as("admin").write(artist("my-miles"));
		expect(seen?.status).toHaveProperty("k");
	});

	it("asks the read hook of a type, with what was written, what the writer may see", async () => {
		const data = create(SecretSchema, { reader: "admin" });
		const { resource } = await as("admin").write(
			resourceOf(Secret, { id: idOf(Secret, "s"), data }),
		);
		expect(resource?.data).toBeDefined();
	});

	it("takes operator:read to list by an owner whose type is not registered", async () => {
		const type = { group: "gone", groupVersion: "v1", kind: "Orchestra" };
		const owner = create(IDSchema, { type, tenancy: {}, name: "nrg", uid: "uid-of-owner" });
		for (const owned of [
			album("blue", { owner }),
			album("red", { owner, tenancy: { namespace: "n" } }),
		]) {
			const id = owned.id && { ...owned.id, uid: `uid-of-${owned.id.name}` };
			const resource = { ...owned, ...(id && { id }) };
			await t.backend.commit([{ op: "put", resource, expectedVersion: "" }]);
		}
		authorizer.grant("former", {
			subject: "former",
			rules: [
				{ operations: ["operator:read"], type: "gone.*" },
				{ operations: ["operator:read"], type: "demo.*", namespace: "n" },
			],
		});
		const listed = async (token: string) => {
			const options = { headers: { authorization: `Bearer ${token}` } };
			const { resources } = await t.client.listByOwner({ owner }, options);
			return resources.map(({ id }) => id?.name).sort();
		};
		expect(await listed("admin")).toEqual(["blue", "red"]);
		expect(await listed("former")).toEqual(["red"]);
		await expectRefusal(
			listed("reader"),
			Code.PermissionDenied,
			"reader lacks operator:read on gone.v1.Orchestra",
		);
	});

	it("runs no hook of a type for a caller without rights", async () => {
		await expectRefusal(
			as("reader").write({ ...artist("bug") }),
			Code.PermissionDenied,
			"reader lacks operator:write on demo.v2.Artist",
		);
	});

	it("leaves what is denied out of lists, by tenancy and by name", async () => {
		expect(await as("admin").list()).toEqual(["my-miles", "john"]);
		expect(await as("reader").list()).toEqual(["my-miles"]);
		expect(await as("prefix").list()).toEqual(["my-miles"]);
	});

	it("leaves what is denied out of watches", async () => {
		const abort = new AbortController();
		const seen: unknown[] = [];
		for await (const { event } of as("reader").watch(abort.signal)) {
			if (event.case === "upsert") {
				seen.push(event.value.resource?.id?.name);
			}
			if (event.case === "endOfSnapshot") {
				await as("admin").write(artist("max", { namespace: "n" }));
				await as("admin").write(artist("ella"));
			}
			if (seen.length === 2) {
				break;
			}
		}
		expect(seen).toEqual(["my-miles", "ella"]);
	});

	it("ends the watch of a token whose policy has changed", async () => {
		const abort = new AbortController();
		const drain = async () => {
			for await (const { event } of as("reader").watch(abort.signal)) {
				if (event.case === "endOfSnapshot") {
					authorizer.revoke("reader");
				}
			}
		};
		await expectRefusal(drain(), Code.Unauthenticated, /watch again with a valid token$/);
	});

	it("asks a type's hook about the stored resource before a write replaces it", async () => {
		const secret = (reader: string) =>
			resourceOf(Secret, { id: idOf(Secret, "s"), data: create(SecretSchema, { reader }) });
		const { resource } = await as("admin").write(secret("admin"));
		const taken = { ...secret("reader"), version: "1" };
		for (const attempt of [secret("reader"), taken]) {
			await expectRefusal(
				as("reader").write(attempt),
				Code.PermissionDenied,
				"reader may not write for admin",
			);
		}
		expect((await as("admin").read(idOf(Secret, "s"))).resource?.version).toBe(resource?.version);
	});

	it("tells no more of the stored resource by a dry run that would make it readable", async () => {
		const secret = (reader: string) =>
			resourceOf(Open, { id: idOf(Open, "s"), data: create(SecretSchema, { reader }) });
		const open = await startService(connection, { authorizer, types: [Open] });
		const token = (subject: string) => ({ headers: { authorization: `Bearer ${subject}` } });
		authorizer.grant("writer", {
			subject: "writer",
			rules: [{ operations: ["operator:write"], type: Open.key }],
		});
		const { resource } = await open.client.write({ resource: secret("admin") }, token("admin"));
		const id = resource?.id;
		const status = create(StatusSchema, { observedGeneration: resource?.generation ?? "" });
		if (id === undefined) {
			throw new Error("the response has no id");
		}
		await open.client.writeStatus({ id, key: "found", status }, token("admin"));
		const seen = await open.client.mutateAndValidate(
			{ resource: secret("writer") },
			token("writer"),
		);
		expect(seen.resource?.id?.uid).toBe(id.uid);
		expect(seen.resource?.status).toEqual({});
		await open[Symbol.asyncDispose]();
	});

	it("asks a type's hooks, with the resource where they need it", async () => {
		const secret = (reader: string) =>
			resourceOf(Secret, {
				id: idOf(Secret, "s"),
				data: create(SecretSchema, { reader }),
			});
		await expectRefusal(
			as("admin").write(secret("reader")),
			Code.PermissionDenied,
			"admin may not write for reader",
		);
		await as("admin").write(secret("admin"));
		await as("admin").read(idOf(Secret, "s"));
		await expectRefusal(
			as("reader").read(idOf(Secret, "s")),
			Code.PermissionDenied,
			"reader is not admin",
		);
		expect(await as("reader").list(Secret)).toEqual([]);
		await expectRefusal(as("nobody").list(Secret), Code.PermissionDenied, "nobody lists secrets");
	});

	it("denies where a type's hook has seen the resource and does not decide", async () => {
		const Undecided = defineType(SecretSchema, { authorize: { read: () => needsResource } });
		await using service = await startService(connection, { authorizer, types: [Undecided] });
		const options = { headers: { authorization: "Bearer admin" } };
		const id = idOf(Undecided, "s");
		const resource = resourceOf(Undecided, { id, data: create(SecretSchema) });
		await service.client.write({ resource }, options);
		await expectRefusal(
			service.client.read({ id }, options),
			Code.PermissionDenied,
			/^the authorization hook made no decision on demo\.v2\.Secret/,
		);
	});
});

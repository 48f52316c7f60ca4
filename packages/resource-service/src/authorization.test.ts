import { create } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { IDSchema, NamespaceSchema, type Resource } from "@plinth/proto";
import { idOf, Namespace, resourceOf } from "@plinth/resource";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Artist, album, artist, Secret } from "../testdata/demo.ts";
import { SecretSchema } from "../testdata/gen/acme/demo/v2/demo_pb.ts";
import { PolicyAuthorizer } from "./policy-authorizer.ts";
import { connections, expectRefusal, startService, type TestService } from "./service.fixture.ts";

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
		await expectRefusal(drain(), Code.Unauthenticated, /watch again with another$/);
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
});

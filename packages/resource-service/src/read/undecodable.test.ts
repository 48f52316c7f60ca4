import { create } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import { Code, createClient, createRouterTransport } from "@connectrpc/connect";
import { type Resource, ResourceService } from "@plinth/proto";
import {
	type Access,
	allowed,
	defineType,
	denied,
	finalizersKey,
	idOf,
	isMarkedForDeletion,
	Namespace,
	needsResource,
	newUlid,
	Partition,
	type ResourceType,
	resourceOf,
	Tombstone,
	TypeRegistry,
} from "@plinth/resource";
import { systemRuntime } from "@plinth/runtime";
import { createMemoryBackend } from "@plinth/storage";
import { describe, expect, it } from "vitest";
import { insecureAllowAll } from "../access/open-access.ts";
import { PolicyAuthorizer, type PolicyRule } from "../access/policy-authorizer.ts";
import { Artist, artist } from "../demo.fixture.ts";
import { createResourceService } from "../resource-service.ts";
import { ensureDefaultTenancy } from "../tenancy/tenancy-defaults.ts";

/** Decides by the data: only who has the artist's name may read or write it. */
const Guarded = defineType(Artist.schema, {
	authorize: {
		read: (access, _, decoded) => decide(access, decoded),
		write: (access, _, decoded) => decide(access, decoded),
		list: () => allowed,
	},
});

function decide(access: Access, decoded: { readonly resource: Resource } | undefined) {
	if (decoded === undefined) {
		return needsResource;
	}
	return decoded.resource.metadata.reader === access.subject ? allowed : denied("not yours");
}

async function serviceWith(type: ResourceType, rules?: readonly PolicyRule[]) {
	const backend = createMemoryBackend();
	await ensureDefaultTenancy(backend, systemRuntime);
	const registry = new TypeRegistry([Partition, Namespace, Tombstone, type]);
	const policies = new PolicyAuthorizer();
	if (rules !== undefined) {
		policies.grant("token", { subject: "someone", rules });
	}
	const authorizer = rules === undefined ? insecureAllowAll : policies;
	const transport = createRouterTransport((router) => {
		router.service(ResourceService, createResourceService({ backend, registry, authorizer }));
	});
	const client = createClient(ResourceService, transport);
	const call = { headers: { authorization: "Bearer token" } };
	/** Stores an artist as a program did in whose type the first field was of another kind. */
	const store = async (name: string, metadata: Readonly<Record<string, string>> = {}) => {
		const id = { ...idOf(Artist, name), uid: newUlid(systemRuntime) };
		const { typeUrl = "" } = resourceOf(Artist, { id }).data ?? {};
		const resource: Resource = {
			...resourceOf(Artist, { id, metadata }),
			generation: newUlid(systemRuntime),
			data: create(AnySchema, { typeUrl, value: Uint8Array.of(0x0a, 0x7f, 1) }),
		};
		const { resources } = await backend.commit([{ op: "put", resource, expectedVersion: "" }]);
		return resources[0] ?? resource;
	};
	return { client, call, store };
}

const id = idOf(Artist, "broken");
const tenancy = { partition: "default", namespace: "default" };

describe("a stored resource that its type can't decode", () => {
	it("is read, listed and watched as it is stored, and can get a status", async () => {
		const { client, store } = await serviceWith(Artist);
		const stored = await store("broken");
		expect((await client.read({ id })).resource?.data?.value).toEqual(stored.data?.value);
		const { resources } = await client.list({ type: Artist.type, tenancy });
		expect(resources).toHaveLength(1);
		for await (const { event } of client.watchList({ type: Artist.type, tenancy })) {
			expect(event.case).toBe("upsert");
			break;
		}
		const status = { observedGeneration: stored.generation, conditions: [{ type: "Known" }] };
		const { resource } = await client.writeStatus({
			...{ key: "probe", status },
			...(stored.id && { id: stored.id }),
		});
		expect(resource?.status.probe?.conditions).toHaveLength(1);
	});

	it("can't be written as it is, only replaced by what can be decoded", async () => {
		const { client, store } = await serviceWith(Artist);
		const stored = await store("broken");
		const refused = client.write({ resource: { ...stored, metadata: { a: "b" } } });
		await expect(refused).rejects.toMatchObject({
			code: Code.InvalidArgument,
			rawMessage: expect.stringContaining(`malformed ${Artist.schema.typeName}`),
		});
		const { resource } = await client.write({ resource: artist("broken") });
		expect(resource?.id?.uid).toBe(stored.id?.uid);
	});

	it("can be deleted, with finalizers too: they are taken away though its data stays", async () => {
		const { client, store } = await serviceWith(Artist);
		await store("plain");
		await client.delete({ id: idOf(Artist, "plain") });
		await store("broken", { [finalizersKey]: "one two" });
		await client.delete({ id });
		const { resource: marked } = await client.read({ id });
		if (marked === undefined) {
			throw new Error("it is gone");
		}
		expect(isMarkedForDeletion(marked)).toBe(true);
		const changed = {
			...marked,
			data: { ...create(AnySchema, marked.data), value: Uint8Array.of(0x0a) },
		};
		await expect(
			client.write({
				resource: { ...changed, metadata: { ...marked.metadata, [finalizersKey]: "two" } },
			}),
		).rejects.toThrow("change its data");
		await client.write({
			resource: { ...marked, metadata: { ...marked.metadata, [finalizersKey]: "" } },
		});
		const { resources } = await client.list({ type: Artist.type, tenancy });
		expect(resources).toEqual([]);
	});

	it("takes operator:undecodable where its type's hook must see its data", async () => {
		const rules = (...operations: readonly string[]) => [{ operations }];
		const user = await serviceWith(Guarded, rules("operator:read", "operator:write"));
		await user.store("broken", { reader: "someone" });
		expect((await user.client.list({ type: Artist.type, tenancy }, user.call)).resources).toEqual(
			[],
		);
		for (const refused of [
			user.client.read({ id }, user.call),
			user.client.delete({ id }, user.call),
		]) {
			await expect(refused).rejects.toMatchObject({
				code: Code.PermissionDenied,
				rawMessage:
					"demo.v2.Artist default/default/broken can't be decoded: malformed acme.demo.v2.Artist, so its type can't decide who may see it: someone lacks operator:undecodable on demo.v2.Artist",
			});
		}
		for (const operation of ["operator:undecodable", "*"]) {
			const admin = await serviceWith(Guarded, rules(operation));
			await admin.store("broken");
			const { resources } = await admin.client.list({ type: Artist.type, tenancy }, admin.call);
			expect(resources).toHaveLength(1);
			await admin.client.read({ id }, admin.call);
			await admin.client.delete({ id }, admin.call);
		}
	});
});

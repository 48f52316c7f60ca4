import { create } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { type ID, NamespaceSchema, PartitionSchema, type Resource } from "@plinth/proto";
import {
	finalizersKey,
	finalizersOf,
	idOf,
	isMarkedForDeletion,
	Namespace,
	Partition,
	resourceOf,
	tenancyFinalizer,
	typeOf,
} from "@plinth/resource";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { artist } from "../demo.fixture.ts";
import { connections, expectRefusal, startService, type TestService } from "../service.fixture.ts";

/** A resource of a type that the service does not register. */
function foreign(namespace: string): Resource {
	const resource = artist("left", { namespace });
	if (resource.id === undefined) {
		throw new Error("an artist has an id");
	}
	resource.id.type = typeOf({ group: "gone", groupVersion: "v1", kind: "Left" });
	resource.id.uid = "01J9ZZZZZZZZZZZZZZZZZZZZZZ";
	return resource;
}

describe.each(connections)("a unit of tenancy (%s)", (connection) => {
	let t: TestService;
	beforeEach(async () => {
		t = await startService(connection);
	});
	afterEach(() => t[Symbol.asyncDispose]());

	async function writeNamespace(): Promise<ID> {
		const resource = resourceOf(Namespace, {
			id: idOf(Namespace, "n"),
			data: create(NamespaceSchema),
		});
		return (await t.client.write({ resource })).resource?.id as ID;
	}

	async function stored(id: ID): Promise<Resource> {
		return (await t.client.read({ id })).resource as Resource;
	}

	/** The resource as one writes it who wants it to go at once. */
	async function withoutFinalizers(id: ID): Promise<Resource> {
		const resource = await stored(id);
		return { ...resource, metadata: { ...resource.metadata, [finalizersKey]: "" } };
	}

	it("is not removed by a write of its finalizers while it holds anything, of whatever type", async () => {
		const id = await writeNamespace();
		await t.backend.commit([{ op: "put", resource: foreign("n"), expectedVersion: "" }]);
		await t.client.delete({ id });
		await expectRefusal(
			t.client.write({ resource: await withoutFinalizers(id) }),
			Code.FailedPrecondition,
			/^tenancy\.v1\.Namespace.* is not empty: its status lists the remaining resources/,
		);
		expect(isMarkedForDeletion(await stored(id))).toBe(true);
		const left = foreign("n");
		const { resources } = await t.backend.list({
			type: left.id?.type ?? typeOf({ group: "", groupVersion: "", kind: "" }),
			tenancy: { partition: "default", namespace: "n" },
			namePrefix: "",
		});
		const expectedVersion = resources[0]?.version ?? "";
		await t.backend.commit([{ op: "delete", id: left.id as ID, expectedVersion }]);
		await t.client.write({ resource: await withoutFinalizers(id) });
		await expectRefusal(t.client.read({ id }), Code.NotFound, "resource not found");
	});

	it("of a partition counts what is in its namespaces, and the namespaces", async () => {
		const id = idOf(Partition, "p");
		await t.client.write({
			resource: resourceOf(Partition, { id, data: create(PartitionSchema) }),
		});
		await t.client.delete({ id });
		await expectRefusal(
			t.client.write({ resource: await withoutFinalizers(id) }),
			Code.FailedPrecondition,
			/^tenancy\.v1\.Partition.* is not empty/,
		);
	});

	it("is not created over what a server of an older version has left behind", async () => {
		const left = foreign("n");
		const { version } = await t.backend.commit([
			{ op: "put", resource: left, expectedVersion: "" },
		]);
		const refusal =
			/^tenancy\.v1\.Namespace.* can't be created: a deleted namespace of the same name still contains 1 resource,/;
		await expectRefusal(writeNamespace(), Code.FailedPrecondition, refusal);
		await t.backend.commit([{ op: "delete", id: left.id as ID, expectedVersion: version }]);
		await writeNamespace();
	});

	it.each(["Delete", "Write"])("without finalizers is marked by a %s first", async (method) => {
		const id = { ...idOf(Namespace, "bare"), uid: "01J9ZZZZZZZZZZZZZZZZZZZZZY" };
		const bare = resourceOf(Namespace, { id, data: create(NamespaceSchema) });
		await t.backend.commit([{ op: "put", resource: bare, expectedVersion: "" }]);
		if (method === "Delete") {
			await t.client.delete({ id });
		} else {
			const resource = await stored(id);
			const metadata = { ...resource.metadata, deletionTimestamp: "2030-01-01T00:00:00Z" };
			await t.client.write({ resource: { ...resource, metadata } });
		}
		const marked = await stored(id);
		expect(isMarkedForDeletion(marked)).toBe(true);
		expect(finalizersOf(marked)).toEqual([tenancyFinalizer]);
	});

	it("that is being deleted can't be made again, nor written into, until it is gone", async () => {
		const id = await writeNamespace();
		await t.client.write({ resource: artist("miles", { namespace: "n" }) });
		await t.client.delete({ id });
		const again = resourceOf(Namespace, {
			id: idOf(Namespace, "n"),
			data: create(NamespaceSchema),
		});
		await expectRefusal(
			t.client.write({ resource: again }),
			Code.InvalidArgument,
			"the resource is marked for deletion, so a write can't leave it as it is: only finalizers can be removed",
		);
		await expectRefusal(
			t.client.write({
				resource: {
					...again,
					data: { ...again.data, value: new Uint8Array([10, 1, 97]) },
				} as Resource,
			}),
			Code.InvalidArgument,
			/^the resource is marked for deletion, so a write can.t (leave it as it is|change its data)/,
		);
		await expectRefusal(
			t.client.write({ resource: again, createOnly: true }),
			Code.AlreadyExists,
			/^n already exists/,
		);
		await expectRefusal(
			t.client.write({ resource: artist("next", { namespace: "n" }) }),
			Code.InvalidArgument,
			/^tenancy marked for deletion: /,
		);
	});
});

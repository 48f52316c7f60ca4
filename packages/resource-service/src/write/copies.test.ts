import { create } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { OriginSchema, type Resource, StatusSchema } from "@plinth/proto";
import {
	addFinalizer,
	idOf,
	newUlid,
	Partition,
	resourceOf,
	tenancyFinalizer,
} from "@plinth/resource";
import { systemRuntime } from "@plinth/runtime";
import { beforeEach, describe, expect, it } from "vitest";
import { Artist, artist } from "../demo.fixture.ts";
import { expectRefusal, startService, type TestService } from "../service.fixture.ts";

const tenancy = { partition: "west", namespace: "default" };
const home = { cluster: "01HOME", partition: "default", peering: "west", path: ["01HOME"] };
const isCopy =
	"demo.v2.Artist west/default/miles is a copy: change the original, demo.v2.Artist default/default/miles in the cluster 01HOME, copied from the peering west";
const isImported =
	"tenancy.v1.Partition west is only written by an import from the peering west: use another partition, or write in that cluster";

describe("a copy", () => {
	let t: TestService;
	let copy: Resource;

	/** Stores it as an import does, beside the service. */
	beforeEach(async () => {
		t = await startService("in-process");
		const partition = resourceOf(Partition, {
			id: idOf(Partition, "west", {}, newUlid(systemRuntime)),
		});
		addFinalizer(partition, tenancyFinalizer);
		partition.origin = create(OriginSchema, { ...home, partition: "" });
		copy = resourceOf(Artist, { id: idOf(Artist, "miles", tenancy, newUlid(systemRuntime)) });
		copy.generation = newUlid(systemRuntime);
		copy.origin = create(OriginSchema, { ...home, uid: newUlid(systemRuntime), version: "7" });
		await t.backend.commit([
			{ op: "put", resource: partition, expectedVersion: "" },
			{ op: "put", resource: copy, expectedVersion: "" },
		]);
		return () => t[Symbol.asyncDispose]();
	});

	const refuses = (call: Promise<unknown>, message: string) =>
		expectRefusal(call, Code.FailedPrecondition, message);

	it("can be read, with its origin", async () => {
		const { resource } = await t.client.read({ id: idOf(Artist, "miles", tenancy) });
		expect(resource?.origin).toEqual(copy.origin);
	});

	it("can't be written, deleted or reported on: the refusal names its home", async () => {
		const id = idOf(Artist, "miles", tenancy);
		const { resource: read } = await t.client.read({ id });
		for (const resource of [resourceOf(Artist, { id }), ...(read ? [read] : [])]) {
			await refuses(t.client.write({ resource }), isCopy);
			await refuses(t.client.mutateAndValidate({ resource }), isCopy);
		}
		const marked = resourceOf(Artist, { id });
		marked.metadata.deletionTimestamp = new Date(0).toISOString();
		await refuses(t.client.write({ resource: marked }), isCopy);
		await refuses(t.client.delete({ id }), isCopy);
		const status = create(StatusSchema, { observedGeneration: copy.generation });
		const uid = copy.id?.uid ?? "";
		await refuses(t.client.writeStatus({ id: { ...id, uid }, key: "me", status }), isCopy);
		const { resource } = await t.client.read({ id });
		expect(resource).toEqual({ ...copy, version: resource?.version });
	});

	it("is alone in its partition: nothing else can be created there, and the partition stays", async () => {
		await refuses(t.client.write({ resource: artist("ella", tenancy) }), isImported);
		const id = idOf(Partition, "west");
		const owned =
			"tenancy.v1.Partition west belongs to an import from the peering west, which removes it: delete the Import";
		await refuses(t.client.delete({ id }), owned);
		await refuses(t.client.write({ resource: resourceOf(Partition, { id }) }), owned);
	});

	it("can't own resources", async () => {
		const owner = copy.id;
		for (const uid of ["", owner?.uid ?? ""]) {
			const resource = artist("ella");
			await expectRefusal(
				t.client.write({ resource: { ...resource, ...(owner && { owner: { ...owner, uid } }) } }),
				Code.InvalidArgument,
				"resource.owner is a copy, which can't own resources",
			);
		}
	});

	it("is not created by a write with an origin", async () => {
		const resource = artist("ella");
		resource.origin = create(OriginSchema, home);
		await expectRefusal(
			t.client.write({ resource }),
			Code.InvalidArgument,
			"resource.origin is automatically set for copies and cannot be provided: leave it out",
		);
	});
});

import { create, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter } from "@bufbuild/protobuf/wire";
import { Code } from "@connectrpc/connect";
import { OwnerReferenceSchema, type Resource, ResourceSchema } from "@plinth/proto";
import { typeOf } from "@plinth/resource";
import { afterEach, beforeEach, describe, it } from "vitest";
import { Artist, artist } from "../demo.fixture.ts";
import { connections, expectRefusal, startService, type TestService } from "../service.fixture.ts";
import { resourceServiceLimits } from "./limits.ts";

describe.each(connections)("the size of a resource, %s", (connection) => {
	let t: TestService;
	beforeEach(async () => {
		t = await startService(connection);
	});
	afterEach(() => t[Symbol.asyncDispose]());

	const tooLarge = /^resource is too large: \d+ bytes, more than 1048576$/;
	const huge = "x".repeat(resourceServiceLimits.resourceBytes);

	it.each<[part: string, resource: Resource]>([
		["data", artist("miles", {}, huge)],
		[
			"owner references",
			{
				...artist("miles"),
				ownerReferences: [
					create(OwnerReferenceSchema, { type: typeOf(Artist.type), name: "a", region: huge }),
				],
			},
		],
		[
			"fields that nobody knows",
			{
				...artist("miles"),
				$unknown: [{ no: 900, wireType: 2, data: new BinaryWriter().string(huge).finish() }],
			},
		],
	])("counts its %s", async (_part, resource) => {
		await expectRefusal(t.client.write({ resource }), Code.InvalidArgument, tooLarge);
	});

	it("is counted exactly", async () => {
		const stored = (await t.client.write({ resource: artist("miles") })).resource;
		const bytes = toBinary(ResourceSchema, stored ?? artist("miles")).byteLength;
		// The genre was "jazz", and its length and those around it take more bytes when it is long.
		const room = resourceServiceLimits.resourceBytes - bytes;
		await t.client.write({ resource: artist("miles", {}, "x".repeat(room - 20)) });
		const over = t.client.write({ resource: artist("miles", {}, "x".repeat(room + 20)) });
		await expectRefusal(over, Code.InvalidArgument, tooLarge);
	});
});

describe("an error", () => {
	it("says what is wrong in no more than can be sent", async () => {
		await using t = await startService("gRPC over a socket");
		const type = { group: "é".repeat(100_000), groupVersion: "v1", kind: "Nope" };
		await expectRefusal(
			t.client.list({ type, tenancy: {} }),
			Code.InvalidArgument,
			/^resource type éé+…$/,
		);
	});
});

import { create } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { idOf, resourceOf } from "@plinth/resource";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Secret } from "../testdata/demo.ts";
import { SecretSchema } from "../testdata/gen/acme/demo/v2/demo_pb.ts";
import { expectRefusal, startService, type TestService } from "./service.fixture.ts";

describe("stored data that its type no longer understands, where a hook has to see it", () => {
	let t: TestService;
	beforeEach(async () => {
		t = await startService("in-process");
		for (const [name, value] of [
			["fine", undefined],
			["not-fine", new Uint8Array([0x0a, 0xff])],
		] as const) {
			const id = { ...idOf(Secret, name), uid: name };
			const resource = resourceOf(Secret, { id, data: create(SecretSchema, { reader: "anyone" }) });
			const data = value && create(AnySchema, { typeUrl: resource.data?.typeUrl ?? "", value });
			const stored = { ...resource, ...(data && { data }) };
			await t.backend.commit([{ op: "put", resource: stored, expectedVersion: "" }]);
		}
	});
	afterEach(() => t[Symbol.asyncDispose]());

	it("is left out of lists, and does not hold up the rest", async () => {
		const { resources } = await t.client.list({ type: Secret.type, tenancy: {} });
		expect(resources.map(({ id }) => id?.name)).toEqual(["fine"]);
	});

	it("is named by a read, which is no fault of the server", async () => {
		await expectRefusal(
			t.client.read({ id: idOf(Secret, "not-fine") }),
			Code.FailedPrecondition,
			"demo.v2.Secret default/default/not-fine can't be decoded: malformed acme.demo.v2.Secret",
		);
	});
});

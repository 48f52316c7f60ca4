import { create } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import { idOf, resourceOf } from "@plinth/resource";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SecretSchema } from "../../testdata/gen/acme/demo/v2/demo_pb.ts";
import { Secret } from "../demo.fixture.ts";
import { startService, type TestService } from "../service.fixture.ts";

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

	it("is listed and read by those with full rights", async () => {
		const { resources } = await t.client.list({ type: Secret.type, tenancy: {} });
		expect(resources.map(({ id }) => id?.name)).toEqual(["fine", "not-fine"]);
		await t.client.read({ id: idOf(Secret, "not-fine") });
	});
});

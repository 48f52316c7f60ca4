import { fromJson, toJson } from "@bufbuild/protobuf";
import { ViolationsSchema } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { Code, ConnectError } from "@connectrpc/connect";
import { IDSchema, type Resource, ResourceService } from "@plinth/proto";
import {
	idOf,
	Namespace,
	Partition,
	type ResourceType,
	resourceOf,
	TypeRegistry,
} from "@plinth/resource";
import { systemRuntime } from "@plinth/runtime";
import { createMemoryBackend } from "@plinth/storage";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { insecureAllowAll } from "../access/open-access.ts";
import { openPort } from "../fuzz/port.fixture.ts";
import { gigType } from "../gig.fixture.ts";
import { resourceServiceLimits } from "../requests/limits.ts";
import { createResourceService } from "../resource-service.ts";
import { connections, startService, type TestService } from "../service.fixture.ts";
import { ensureDefaultTenancy } from "../tenancy/tenancy-defaults.ts";

interface Gig {
	readonly title?: string;
	readonly seats?: number;
	readonly sold?: number;
	readonly tags?: readonly string[];
}

function gig(type: ResourceType, data: Gig): Resource {
	const message = fromJson(type.schema, { ...data, tags: [...(data.tags ?? [])] });
	return resourceOf(type, { id: idOf(type, "gig"), data: message });
}

describe.each(connections)("the rules in a type's descriptor, %s", (connection) => {
	let t: TestService;
	let Gig: ResourceType;
	beforeEach(async () => {
		t = await startService(connection);
		Gig = gigType();
		t.registry.register(Gig);
	});
	afterEach(() => t[Symbol.asyncDispose]());

	async function refusalOf(data: Gig): Promise<ConnectError> {
		const error: unknown = await t.client.write({ resource: gig(Gig, data) }).catch((e) => e);
		if (!(error instanceof ConnectError)) {
			throw new Error("expected to be refused");
		}
		return error;
	}

	it("let pass what keeps them", async () => {
		await t.client.write({ resource: gig(Gig, { title: "live", seats: 10, sold: 10 }) });
	});

	it("are enforced without code, and all that are broken are named at once", async () => {
		const error = await refusalOf({ seats: 0, sold: 1, tags: ["fine", "not so fine"] });
		expect(error.code).toBe(Code.InvalidArgument);
		expect(error.rawMessage.split("; ").sort()).toEqual([
			expect.stringMatching(/^resource\.data invalid: sold more than there is/),
			expect.stringMatching(/^resource\.data\.seats invalid: /),
			expect.stringMatching(/^resource\.data\.tags\[1\] invalid: /),
			expect.stringMatching(/^resource\.data\.title invalid: /),
		]);
	});

	it("are in the details of the error", async () => {
		const [details] = (await refusalOf({ seats: 0 })).findDetails(ViolationsSchema);
		expect(details?.violations.map(({ ruleId }) => ruleId).sort()).toEqual([
			"int32.gt",
			"string.min_len",
		]);
	});

	it("leave an error that can be sent, however many are broken", async () => {
		const tags = Array.from({ length: 5_000 }, (_, index) => `tag number ${index}`);
		const error = await refusalOf({ title: "live", seats: 1, tags });
		expect(error.code).toBe(Code.InvalidArgument);
		expect(error.rawMessage.length).toBeLessThanOrEqual(resourceServiceLimits.errorMessageLength);
		const [details] = error.findDetails(ViolationsSchema);
		expect(details?.violations.length).toBeGreaterThan(10);
	});

	it("are checked by MutateAndValidate too", async () => {
		const call = t.client.mutateAndValidate({ resource: gig(Gig, { seats: 1 }) });
		await expect(call).rejects.toMatchObject({ code: Code.InvalidArgument });
	});
});

describe("a type without generated code, in JSON", () => {
	it("is written and read, and its rules are enforced", async () => {
		const Gig = gigType();
		const registry = new TypeRegistry([Partition, Namespace, Gig]);
		const backend = createMemoryBackend();
		await ensureDefaultTenancy(backend, systemRuntime);
		await using port = await openPort(
			createResourceService({ backend, registry, authorizer: insecureAllowAll }),
			registry,
		);
		const send = async (method: string, request: unknown) => {
			const response = await port.send({
				path: `/${ResourceService.typeName}/${method}`,
				headers: { "content-type": "application/json" },
				body: Buffer.from(JSON.stringify(request)),
			});
			return { code: response.code, body: JSON.parse(response.body.toString()) };
		};
		const id = toJson(IDSchema, idOf(Gig, "gig"));
		const data = { "@type": "type.googleapis.com/acme.live.v1.Gig", title: "live", seats: 10 };

		expect((await send("Write", { resource: { id, data } })).code).toBe("ok");
		expect((await send("Read", { id })).body.resource.data).toEqual(data);
		const refused = await send("Write", { resource: { id, data: { ...data, seats: -1 } } });
		expect(refused.code).toBe("invalid_argument");
		expect(refused.body.message).toMatch(/^resource\.data\.seats invalid: /);
		await backend.close();
	});
});

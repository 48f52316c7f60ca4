import { fromJson } from "@bufbuild/protobuf";
import { Code, createClient } from "@connectrpc/connect";
import { createInProcessTransport } from "@plinth/in-process";
import { TypeService } from "@plinth/proto";
import {
	type Access,
	AsynchronousHook,
	allowed,
	denied,
	idOf,
	type ResourceType,
	resourceOf,
	TypeRegistry,
} from "@plinth/resource";
import { silentLogger } from "@plinth/runtime";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createCallerAuthenticator } from "../access/request-caller.ts";
import { gigType } from "../gig.fixture.ts";
import { connections, expectRefusal, startService, type TestService } from "../service.fixture.ts";
import { createTypeService } from "../type-service.ts";

/** What a hook comes to of which nobody waits: each refuses. */
const refuse = async () => {
	throw new Error("sold out");
};

describe.each(connections)("a hook that returns a promise, %s", (connection) => {
	let t: TestService;
	let faults: unknown[];
	let unhandled: unknown[];
	const onUnhandled = (reason: unknown) => unhandled.push(reason);

	beforeEach(async () => {
		faults = [];
		unhandled = [];
		process.on("unhandledRejection", onUnhandled);
		t = await startService(connection, {
			logger: { ...silentLogger, error: ({ err }) => faults.push(err) },
		});
	});
	afterEach(async () => {
		await t[Symbol.asyncDispose]();
		await new Promise((resolve) => setImmediate(resolve));
		process.off("unhandledRejection", onUnhandled);
		expect(unhandled).toEqual([]);
	});

	/** Registers the type with hooks as code without types may have them. */
	function gig(hooks: object): ResourceType {
		const Gig = gigType(hooks);
		t.registry.register(Gig);
		return Gig;
	}

	function write(Gig: ResourceType) {
		const data = fromJson(Gig.schema, { title: "live", seats: 1 });
		return t.client.write({ resource: resourceOf(Gig, { id: idOf(Gig, "gig"), data }) });
	}

	async function expectFault(call: Promise<unknown>, hook: string): Promise<void> {
		await expectRefusal(call, Code.Internal, "internal error");
		expect(faults).toEqual([expect.any(AsynchronousHook)]);
		expect(String(faults[0])).toContain(`hook ${hook} of resource type`);
	}

	it.each(["mutate", "validate"])("%s: stores nothing, and is logged by name", async (hook) => {
		const Gig = gig({ [hook]: refuse });
		await expectFault(write(Gig), hook);
		await expectRefusal(t.client.read({ id: idOf(Gig, "gig") }), Code.NotFound, /./);
	});

	it("authorize.write: lets nobody write", async () => {
		const Gig = gig({ authorize: { write: async () => allowed } });
		await expectFault(write(Gig), "write");
		await expectRefusal(t.client.read({ id: idOf(Gig, "gig") }), Code.NotFound, /./);
	});

	it.each(["read", "list"])("authorize.%s: lets nobody read", async (hook) => {
		const Gig = gig({ authorize: { [hook]: async () => denied("no") } });
		const call =
			hook === "read"
				? t.client.read({ id: idOf(Gig, "gig") })
				: t.client.list({ type: Gig.type, tenancy: {} });
		await expectFault(call, hook);
	});
});

describe("an authorizer whose check returns a promise", () => {
	// Vitest fails where its rejection is unhandled.
	describe.each([
		["that allows", async () => allowed],
		["that rejects", refuse],
	])("%s", (_, check) => {
		const access = { subject: "miles", check } as unknown as Access;
		const authorizer = { authenticate: () => access };

		it("allows nothing", async () => {
			await using t = await startService("in-process", { authorizer });
			const Gig = gigType();
			t.registry.register(Gig);
			await expectRefusal(
				t.client.read({ id: idOf(Gig, "gig") }, { headers: { authorization: "Bearer x" } }),
				Code.Internal,
				"internal error",
			);
		});

		it.each([true, false])("lets nobody name a target, elsewhere: %s", async (isCrossTenancy) => {
			const Gig = gigType();
			const caller = await createCallerAuthenticator(
				new TypeRegistry([Gig]),
				authorizer,
			).authenticate("x");
			const target = { type: Gig.type, tenancy: {}, name: "gig", isCrossTenancy };
			expect(() => caller.decideReference(target)).toThrow(AsynchronousHook);
		});

		it("tells nobody of types", async () => {
			const service = createTypeService({ registry: new TypeRegistry([gigType()]), authorizer });
			const transport = createInProcessTransport((router) => router.service(TypeService, service));
			const listed = createClient(TypeService, transport).listTypes({});
			await expectRefusal(listed, Code.Internal, /./);
		});
	});
});

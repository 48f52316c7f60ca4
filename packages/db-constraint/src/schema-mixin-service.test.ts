import { createClient } from "@connectrpc/connect";
import { createInProcessTransport } from "@plinth/in-process";
import { SchemaMixinService } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { describe, expect, it } from "vitest";
import { Thing } from "../testdata/types.ts";
import { Lab } from "./lab.fixture.ts";
import { createSchemaMixinService } from "./schema-mixin-service.ts";

/** Asks a deployment that has that uid a question that is meant for another one. */
async function ask(uid: string, toUid: string): Promise<unknown> {
	const lab = new Lab(1);
	const deployment = await lab.add({ name: "a", service: "alpha", region: "r1", types: [Thing] });
	const { context } = deployment.running?.constraints ?? expect.fail("it runs");
	const self = { ...deployment.info, uid };
	const service = createSchemaMixinService({
		...context,
		environment: { ...context.environment, self },
	});
	const transport = createInProcessTransport(
		(router) => router.service(SchemaMixinService, service),
		lab.runtime,
	);
	const route = { from: { uid: "other", service: "beta" }, toUid };
	return lab.run(createClient(SchemaMixinService, transport).checkReferences({ route }));
}

describe("the schema mixin service", () => {
	it("refuses what is meant for a deployment with another uid", async () => {
		await expect(ask("mine", "theirs")).rejects.toThrow("not the one with uid theirs");
		await expect(ask("mine", "mine")).resolves.toMatchObject({ answers: [] });
	});

	it("says that it is starting while it has no uid yet", async () => {
		await expect(ask("", "theirs")).rejects.toThrow("has not registered yet");
		await expect(ask("", "")).rejects.toThrow("has not registered yet");
	});
});

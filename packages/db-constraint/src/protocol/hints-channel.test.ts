import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createInProcessTransport } from "@plinth/in-process";
import { SchemaMixinService } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { idOf } from "@plinth/resource";
import { silentLogger, systemRuntime } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import { createMemoryBackend } from "@plinth/storage";
import { expect, it, vi } from "vitest";
import { Thing } from "../../testdata/types.ts";
import { createConstraints } from "../node/constraints.ts";
import { localEnvironment } from "../registry/local-environment.ts";
import { ServiceDescriptor } from "../schema/service-descriptor.ts";
import { keyOf } from "../shadow/resource-key.ts";

it("names in a warning the sibling that can't be reached, and passes deletions on to the others", async () => {
	const clock = new FakeClock();
	const warned: unknown[] = [];
	const received = new Map<string, string[]>();
	const sibling = (address: string, isDown: boolean) => {
		const targets: string[] = [];
		received.set(address, targets);
		const transport = createInProcessTransport((router) => {
			router.rpc(SchemaMixinService.method.forwardDeletions, ({ deletions }) => {
				targets.push(...deletions.map(({ target }) => target?.name ?? ""));
				if (isDown) {
					throw new ConnectError("no server responds", Code.Unavailable);
				}
				return {};
			});
		}, systemRuntime);
		return { address, client: createClient(SchemaMixinService, transport) };
	};
	const siblings = [sibling("http://down", true), sibling("http://up", false)];
	const { hints } = createConstraints({
		backend: createMemoryBackend({ runtime: systemRuntime }),
		descriptor: new ServiceDescriptor({ types: [Thing], foreignTypes: [], service: "alpha" }),
		environment: { ...localEnvironment("01ALPHA"), siblings: () => siblings },
		runtime: { ...systemRuntime, clock },
		logger: { ...silentLogger, warn: (fields) => warned.push(fields.address) },
	});
	const names: string[] = [];
	const patiently = { timeout: 300_000 };
	await vi.waitFor(() => {
		const name = `t${names.length}`;
		names.push(name);
		const target = keyOf(idOf(Thing, name), "r2");
		hints.deleting({ deploymentUid: "01OTHER", target, targetUid: `01${name}` });
		clock.advance(61_000);
		expect(warned.length).toBeGreaterThan(1);
	}, patiently);
	for (const targets of received.values()) {
		await vi.waitFor(() => expect(targets).toEqual(names), patiently);
	}
	expect(new Set(warned)).toEqual(new Set(["http://down"]));
});

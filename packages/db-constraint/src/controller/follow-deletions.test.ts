import { create } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createInProcessTransport } from "@plinth/in-process";
import {
	SchemaMixinService,
	WatchImportedServiceDeletionsResponseSchema,
} from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { EventLoopScheduler, systemRuntime } from "@plinth/runtime";
import { CountedEventLoop } from "@plinth/runtime/testing";
import { createMemoryBackend } from "@plinth/storage";
import { expect, it } from "vitest";
import { Thing } from "../../testdata/types.ts";
import { createConstraints } from "../node/constraints.ts";
import { localEnvironment } from "../registry/local-environment.ts";
import { ServiceDescriptor } from "../schema/service-descriptor.ts";
import { followDeletions } from "./follow-deletions.ts";

it("lets the event loop run while it receives many deletions", async () => {
	const workMs = 0.25;
	const count = 500;
	const loop = new CountedEventLoop();
	const runtime = { ...systemRuntime, scheduler: new EventLoopScheduler(loop) };
	const target = { group: "beta", kind: "Thing", name: "t", region: "r2" };
	const event = { case: "deletion", value: { target, targetUid: "01TARGET" } } as const;
	const service = {
		async *watchImportedServiceDeletions() {
			for (let sent = 0; sent < count; sent++) {
				yield create(WatchImportedServiceDeletionsResponseSchema, { event });
			}
		},
	};
	const transport = createInProcessTransport(
		(router) => router.service(SchemaMixinService, service),
		systemRuntime,
	);
	const { context } = createConstraints({
		backend: createMemoryBackend(),
		descriptor: new ServiceDescriptor({ types: [Thing], service: "alpha" }),
		environment: {
			...localEnvironment("alpha", "alpha"),
			client: () => createClient(SchemaMixinService, transport),
		},
		runtime,
	});
	const end = new AbortController();
	let received = 0;
	const onDeletion = () => {
		loop.work(workMs);
		received += 1;
		if (received === count) {
			end.abort();
		}
	};
	await followDeletions(context, "beta", onDeletion, end.signal);
	expect(received).toBe(count);
	expect(loop.longestMs).toBeLessThan(5 + 16 * workMs);
});

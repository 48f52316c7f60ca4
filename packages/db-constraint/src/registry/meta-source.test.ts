import { create } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createInProcessTransport } from "@plinth/in-process";
import { ResourceService, type WatchEvent, WatchEventSchema } from "@plinth/proto";
import { DeploymentSchema } from "@plinth/proto/gen/plinth/meta/v1/meta_pb.js";
import { idOf, resourceOf } from "@plinth/resource";
import { aborted, silentLogger, systemRuntime } from "@plinth/runtime";
import { expect, it, onTestFinished } from "vitest";
import { followMeta } from "./meta-source.ts";
import { Deployment, metaService } from "./meta-types.ts";
import { RegistryView } from "./registry-view.ts";

/** The Deployment of a meta deployment, as an event. */
function storedMeta(version: string, recovering: boolean): WatchEvent {
	const id = { ...idOf(Deployment, "meta-r1"), uid: "meta" };
	const data = create(DeploymentSchema, { service: metaService, region: "r1", recovering });
	const resource = { ...resourceOf(Deployment, { id, data }), version };
	return create(WatchEventSchema, { event: { case: "upsert", value: { resource } }, version });
}

const endOfSnapshot = create(WatchEventSchema, {
	event: { case: "endOfSnapshot", value: {} },
	version: "1",
});

it("the watch that has shown that a restored meta deployment is complete is ended, and a new one begins", async () => {
	const watches: AbortSignal[] = [];
	const secondBegins = Promise.withResolvers<void>();
	const transport = createInProcessTransport((router) =>
		router.service(ResourceService, {
			async *watchList({ type }, { signal }) {
				if (type?.kind !== Deployment.type.kind) {
					yield endOfSnapshot;
				} else if (watches.push(signal) === 1) {
					yield storedMeta("1", true);
					yield endOfSnapshot;
					yield storedMeta("2", false);
				} else {
					secondBegins.resolve();
				}
				await aborted(signal);
			},
		}),
	);
	const end = new AbortController();
	const following = followMeta(
		{
			source: { address: "meta-r1", client: createClient(ResourceService, transport) },
			view: new RegistryView(),
			runtime: systemRuntime,
			logger: silentLogger,
			onChange: () => {},
			onStep: () => {},
		},
		end.signal,
	);
	onTestFinished(async () => {
		end.abort();
		await following;
	});
	await secondBegins.promise;
	expect(watches.map(({ aborted }) => aborted)).toEqual([true, false]);
});

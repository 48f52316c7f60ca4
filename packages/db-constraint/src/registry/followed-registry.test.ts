import { create } from "@bufbuild/protobuf";
import { createInProcessTransport } from "@plinth/in-process";
import { ResourceService, type WatchEvent, WatchEventSchema } from "@plinth/proto";
import { aborted, silentLogger, systemRuntime } from "@plinth/runtime";
import { createMemoryBackend } from "@plinth/storage";
import { expect, it, onTestFinished } from "vitest";
import { FollowedRegistry } from "./followed-registry.ts";
import { RunningServers } from "./running-servers.ts";

/** A meta deployment without anything in its registry. */
async function* nothing(_: unknown, call: { readonly signal: AbortSignal }) {
	const end: WatchEvent = create(WatchEventSchema, {
		event: { case: "endOfSnapshot", value: {} },
		version: "1",
	});
	yield end;
	await aborted(call.signal);
}

it("a registry that is followed is up to date, though time goes on while that is decided", async () => {
	let nowMs = Date.now();
	const now = () => {
		nowMs += 1;
		return nowMs;
	};
	const { clock } = systemRuntime;
	const runtime = {
		...systemRuntime,
		clock: {
			now,
			monotonic: () => clock.monotonic(),
			setTimer: (delayMs: number, callback: () => void) => clock.setTimer(delayMs, callback),
		},
	};
	const transport = createInProcessTransport((router) =>
		router.service(ResourceService, { watchList: nothing }),
	);
	const changed = Promise.withResolvers<void>();
	const registry: FollowedRegistry = new FollowedRegistry({
		deployment: { service: "alpha", region: "r1", version: "v1", address: "alpha-r1" },
		backend: createMemoryBackend(),
		metaAddresses: ["meta-r1"],
		ownMeta: undefined,
		connect: () => transport,
		dropped: () => new Set(),
		running: new RunningServers(),
		onChange: () => registry.sources.isComplete && changed.resolve(),
		runtime,
		logger: silentLogger,
		callTimeoutMs: 60_000,
	});
	const end = new AbortController();
	const following = registry.follow(end.signal);
	onTestFinished(async () => {
		end.abort();
		await following;
	});
	await changed.promise;
	expect(registry.outdatedSince).toBeUndefined();
});

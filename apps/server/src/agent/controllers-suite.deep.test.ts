/**
 * The suites of controllers, with the controllers in an agent in front of two servers of one storage, of which one is killed
 * at random moments.
 */
import { clone, create } from "@bufbuild/protobuf";
import type { Interceptor, StreamResponse } from "@connectrpc/connect";
import {
	clientOfReconcile,
	declareSuite,
	identity,
	noRewind,
	priming,
	runOn,
	type Suite,
} from "@plinth/controller/suite";
import {
	ResourceService,
	type WatchEvent,
	WatchEventSchema,
	type WatchListRequest,
	WatchListRequestSchema,
} from "@plinth/proto";
import { forEachSeed } from "@plinth/test-support";
import { afterAll, describe, expect, it } from "vitest";
import { AgentBench, type Fault } from "./agent-bench.fixture.ts";

describe("controllers in an agent before servers that are killed", () => {
	const benches: AgentBench[] = [];
	for (const suite of [priming, noRewind, clientOfReconcile, identity]) {
		declareSuite(suite, (run) =>
			forEachSeed(3, async (seed) => {
				const bench = await AgentBench.open({ seed });
				benches.push(bench);
				await runOn(bench, run);
			}),
		);
	}

	afterAll(() => {
		const kills = benches.reduce((sum, bench) => sum + bench.kills, 0);
		expect(kills).toBeGreaterThan(benches.length);
	});
});

/** Whether it is a request for a snapshot. */
function startsWithSnapshot({ afterVersion }: WatchListRequest): boolean {
	return afterVersion === "";
}

/** Changes what watches receive. */
function receiving(
	change: (
		events: AsyncIterable<WatchEvent>,
		request: WatchListRequest,
	) => AsyncIterable<WatchEvent>,
): Interceptor {
	return (next) => async (request) => {
		if (!request.stream || request.method !== ResourceService.method.watchList) {
			return next(request);
		}
		const [first] = await Array.fromAsync(request.message as AsyncIterable<WatchListRequest>);
		const watch = first ?? create(WatchListRequestSchema);
		async function* again() {
			yield watch;
		}
		const response = await next({ ...request, message: again() } as typeof request);
		const events = (response as StreamResponse).message as AsyncIterable<WatchEvent>;
		return { ...response, message: change(events, watch) } as typeof response;
	};
}

/** Takes a snapshot as complete before anything of it has arrived: the rest comes as changes. */
const unprimed: Fault = {
	controllers: receiving(async function* (events, request) {
		if (startsWithSnapshot(request)) {
			yield create(WatchEventSchema, {
				event: { case: "endOfSnapshot", value: {} },
				version: "1",
			});
		}
		yield* events;
	}),
};

/** Continues a watch, at the next server, where its client began it. */
const withoutPosition: Fault = {
	servers: (request, [opened]) =>
		opened === undefined || startsWithSnapshot(request)
			? request
			: { ...request, afterVersion: opened.afterVersion },
};

/** Gives each watch other resources than the others have. */
const unshared: Fault = {
	controllers: receiving(async function* (events) {
		const watch = crypto.randomUUID();
		for await (const event of events) {
			const changed = clone(WatchEventSchema, event);
			if (changed.event.case === "upsert" && changed.event.value.resource !== undefined) {
				changed.event.value.resource.metadata.watch = watch;
			}
			yield changed;
		}
	}),
};

/** What a test of a suite says of a fault, with the first of 20 seeds that finds it. */
async function firstFinding(fault: Fault, { scenarios }: Suite, name: string): Promise<string> {
	const run = scenarios.find((scenario) => scenario.name === name)?.run;
	if (run === undefined) {
		throw new Error(`no test has the name ${name}`);
	}
	for (let seed = 1; seed <= 20; seed++) {
		try {
			await runOn(await AgentBench.open({ seed, fault }), run);
		} catch (error) {
			if (error instanceof Error && error.name === "AssertionError") {
				return error.message;
			}
			throw error;
		}
	}
	return "";
}

describe("the suites of controllers find", () => {
	it("a cache that is used before it is primed", async () => {
		const early =
			"runs no mapper and no reconciler before the last of the priming watches has ended";
		expect(await firstFinding(unprimed, priming, early)).not.toBe("");
		const again = "starts over from an empty cache when a watch fails";
		expect(await firstFinding(unprimed, priming, again)).not.toBe("");
	});

	it("a watch that goes back when it moves to another server", async () => {
		const rewind = "sees no resource in an older state than it has seen";
		expect(await firstFinding(withoutPosition, noRewind, rewind)).toMatch(/\d+ after \d+/);
	});

	it("caches that do not share their objects", async () => {
		const name =
			"caches have one object of each resource, whichever controllers they belong to, and all code gets copies";
		expect(await firstFinding(unshared, identity, name)).not.toBe("");
	});
});

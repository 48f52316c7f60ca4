import { create, fromBinary, type MessageInitShape, toBinary, toJson } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createInProcessTransport } from "@plinth/in-process";
import { ControllerService, ResourceSchema } from "@plinth/proto";
import {
	type ListControllersResponse,
	ListControllersResponseSchema,
	Phase,
	Placement,
	type ReportControllersRequest,
	type ReportControllersRequestSchema,
} from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
import { FakeClock } from "@plinth/runtime/testing";
import { describe, expect, it } from "vitest";
import { createControllerService } from "../manager/controller-service.ts";
import type { ControllerState } from "../manager/controller-state.ts";
import { mergeListings } from "./merge-responses.ts";

type ReportInit = Exclude<
	MessageInitShape<typeof ReportControllersRequestSchema>,
	ReportControllersRequest
>;

const running = { phase: Phase.RUNNING, placement: Placement.SINGLETON, manages: "demo.v1.Artist" };

function reportOf(agent: string, name = "singers"): ReportInit {
	return {
		...{ id: `${agent}-`.padEnd(16, "0"), name: agent, version: "1.0.0" },
		controllers: [
			{
				controller: { name, ...running, requests: { failing: 1 } },
				failing: [{ controller: name, key: "demo.v1.Artist/miles" }],
			},
		],
	};
}

/** A server without controllers of its own but `reaper`, to which agents report. */
function start(clock = new FakeClock()) {
	const own: ControllerState = {
		...{ name: "reaper", manages: "demo.v1.Album", watches: [], placement: "singleton" },
		...{ phase: "running", inPhaseMs: 0, restarts: 0, lastError: undefined, run: undefined },
		reconciles: {
			...{ succeeded: 0, failed: 0, overdue: 0, dropped: 0, totalMs: 0, longestMs: 0 },
			...{ lastFailure: undefined, endlessChain: undefined, durations: [] },
		},
		ownWrites: { noted: 0, waits: 0, waiting: 0, waitedMs: 0, longestWaitMs: 0 },
		orphaned: [],
	};
	const refused = new Set<string>();
	const transport = createInProcessTransport((router) =>
		router.service(
			ControllerService,
			createControllerService(
				{
					state: () => ({ holdsLease: undefined, controllers: [own] }),
					work: () => undefined,
					reconcilesOf: () => [],
					graph: () => ({ types: [], dependencies: [], cycles: [] }),
				},
				{
					read: async () => create(ResourceSchema),
					agents: {
						clock,
						authorize: async (_, names) => {
							if (names.some((name) => refused.has(name))) {
								throw new ConnectError("no", Code.PermissionDenied);
							}
						},
					},
				},
			),
		),
	);
	const client = createClient(ControllerService, transport);
	const refusal = (report: ReportInit) =>
		client.reportControllers(report).then(
			() => "accepted",
			(error: unknown) => ConnectError.from(error).message,
		);
	return { client, clock, refused, refusal };
}

/** The controllers of agents that a server has heard of, without its own. */
async function listed(client: ReturnType<typeof start>["client"]) {
	const { agents } = await client.listControllers({ thisServerOnly: true });
	return agents;
}

function merged(...all: readonly (readonly ListControllersResponse["agents"][number][])[]) {
	return mergeListings(
		all.map((agents) => ({
			server: undefined,
			response: create(ListControllersResponseSchema, { agents: [...agents] }),
		})),
	);
}

describe("reports of agents", () => {
	it("are kept for three intervals, and replaced by the next one", async () => {
		const { client, clock } = start();
		const { interval } = await client.reportControllers(reportOf("a"));
		expect(interval).toEqual(durationFromMs(10_000));
		await clock.advanceAsync(20_000);
		await client.reportControllers(reportOf("b"));
		await client.reportControllers(reportOf("b", "bookers"));
		expect(await listed(client)).toMatchObject([
			{ name: "a", age: durationFromMs(20_000), controllers: [{ failing: [] }] },
			{ name: "b", age: durationFromMs(0), controllers: [{ controller: { name: "bookers" } }] },
		]);
		await clock.advanceAsync(10_000);
		expect(await listed(client)).toMatchObject([{ name: "b" }]);
	});

	it("are merged: of each agent, the newest that any server has", async () => {
		const [one, two] = [start(), start()];
		await one.client.reportControllers(reportOf("a"));
		await one.client.reportControllers(reportOf("b"));
		await one.clock.advanceAsync(10_000);
		await two.client.reportControllers(reportOf("a", "bookers"));
		const { agents, controllers } = merged(await listed(one.client), await listed(two.client));
		expect(agents).toMatchObject([
			{ id: "", name: "a", age: durationFromMs(0), controllers: [] },
			{ id: "", name: "b", age: durationFromMs(10_000), controllers: [] },
		]);
		expect(controllers).toMatchObject([
			{ name: "bookers", servers: [{ server: "a", isAgent: true, phase: Phase.RUNNING }] },
			{ name: "singers", servers: [{ server: "b", isAgent: true }] },
		]);
	});

	it("end with one without controllers, whichever server the others went to", async () => {
		const [one, two] = [start(), start()];
		await one.client.reportControllers(reportOf("a"));
		await two.client.reportControllers(reportOf("a"));
		await one.clock.advanceAsync(1_000);
		await two.clock.advanceAsync(1_000);
		await two.client.reportControllers({ ...reportOf("a"), controllers: [] });
		expect(merged(await listed(one.client), await listed(two.client)).agents).toEqual([]);
	});

	it("are part of the details of a controller", async () => {
		const { client } = start();
		await client.reportControllers(reportOf("a"));
		await client.reportControllers(reportOf("b"));
		const details = await client.getController({ name: "singers" });
		expect(details).toMatchObject({
			controller: { requests: { failing: 2 }, servers: [{ server: "a" }, { server: "b" }] },
			failing: [{ server: "a" }, { server: "b" }],
			agents: [{ name: "a" }, { name: "b" }],
		});
		const other = client.getController({ name: "bookers" }).catch(ConnectError.from);
		expect(await other).toMatchObject({ code: Code.NotFound });
	});
});

describe("a report", () => {
	const one = reportOf("a");
	const withController = (init: NonNullable<ReportInit["controllers"]>[number]["controller"]) => ({
		...one,
		controllers: [{ controller: { name: "singers", ...init } }],
	});

	it.each<readonly [string, ReportInit, string]>([
		["without an id", { ...one, id: "" }, "id must have 16 to 64"],
		["with a name for terminals", { ...one, name: "a\u001b[2J" }, "name must have 1 to 100"],
		["without a controller", { ...one, controllers: [{}] }, "without a controller"],
		["with a malformed name", withController({ name: "a\nb" }), "a name that is malformed"],
		[
			"with a name twice",
			{ ...one, controllers: [...(one.controllers ?? []), ...(one.controllers ?? [])] },
			"two of the same name",
		],
		["with a huge count", withController({ restarts: 2 ** 32 - 1 }), "controller.restarts is not"],
		[
			"with a huge total",
			withController({ reconciles: { succeeded: 2n ** 64n - 1n } }),
			"reconciles.succeeded is not",
		],
		[
			"with a time that no format can express",
			withController({ inPhase: { seconds: 2n ** 62n } }),
			"controller.in_phase is not",
		],
		[
			"with a negative time",
			withController({ lastError: { occurredAt: { seconds: -1n } } }),
			"last_error.occurred_at is not",
		],
		["with an unknown phase", withController({ phase: 99 as Phase }), "phase has an unknown value"],
		[
			"with long texts",
			withController({ mappings: { ["x".repeat(5_000)]: {} } }),
			"mappings has more than 4000 characters",
		],
		[
			"with many controllers",
			{
				...one,
				controllers: Array.from({ length: 101 }, (_, at) => ({ controller: { name: `c${at}` } })),
			},
			"controllers has more than 100",
		],
		[
			"on a controller of the servers",
			reportOf("a", "reaper"),
			"run a controller reaper themselves",
		],
		[
			"that is too large",
			withController({ watches: Array.from({ length: 50 }, () => "x".repeat(3_000)) }),
			"at most 131072 are accepted",
		],
	])("%s is refused, and changes nothing", async (_name, report, message) => {
		const { client, refusal } = start();
		await client.reportControllers(one);
		const before = await listed(client);
		expect(await refusal(report)).toContain(message);
		expect(await listed(client)).toEqual(before);
	});

	it("is refused if the caller may not report on one of its controllers", async () => {
		const { client, refused, refusal } = start();
		refused.add("singers");
		expect(await refusal(one)).toBe("[permission_denied] no");
		expect(await listed(client)).toEqual([]);
	});

	it("is refused if too many agents report, but not one of those", async () => {
		const { client, clock, refusal } = start();
		for (let count = 0; count < 100; count += 1) {
			await client.reportControllers(reportOf(`agent-${count}`));
		}
		expect(await refusal(reportOf("another"))).toContain("100 agents report");
		expect(await refusal({ ...reportOf("unknown"), controllers: [] })).toBe("accepted");
		expect(await refusal(reportOf("agent-7"))).toBe("accepted");
		expect(await listed(client)).toHaveLength(100);
		await clock.advanceAsync(30_000);
		expect(await refusal(reportOf("another"))).toBe("accepted");
	});

	it("with the largest values can be merged with as many others", async () => {
		const { client } = start();
		const time = { seconds: 1_000_000_000n, nanos: 999_999_999 };
		for (let count = 0; count < 100; count += 1) {
			await client.reportControllers({
				...reportOf(`agent-${count}`),
				controllers: [
					{
						controller: {
							...{ name: "singers", restarts: 2 ** 25, inPhase: time },
							requests: { live: 2 ** 25, oldestKey: "x", oldestWaiting: time },
							reconciles: { succeeded: 2n ** 53n, total: time, longest: time },
							cachedTypes: [{ type: "t", size: 2n ** 53n, indexes: { i: 2n ** 53n } }],
						},
					},
				],
			});
		}
		const response = await client.listControllers({});
		const { controllers } = fromBinary(
			ListControllersResponseSchema,
			toBinary(ListControllersResponseSchema, response),
		);
		expect(controllers.find(({ name }) => name === "singers")?.restarts).toBe(100 * 2 ** 25);
		expect(toJson(ListControllersResponseSchema, response)).toHaveProperty("agents");
	});
});

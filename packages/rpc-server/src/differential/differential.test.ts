import { createRegistry } from "@bufbuild/protobuf";
import { type ConnectError, createConnectRouter } from "@connectrpc/connect";
import { ResourceService } from "@plinth/proto";
import { systemClock } from "@plinth/runtime";
import { replay, seeds } from "@plinth/test-support";
import { describe, expect, it } from "vitest";
import { createRpcRouter } from "../router.ts";
import { behavingService } from "./behaving-service.fixture.ts";
import { type GeneratedCall, generatedCall } from "./generated-call.fixture.ts";
import { byConnect, byOwnPath, type Received } from "./memory-carrier.fixture.ts";

const options = {
	readMaxBytes: 5_000,
	jsonOptions: { registry: createRegistry(), ignoreUnknownFields: false },
};

/** What may differ, and why. */
const accepted: readonly {
	readonly why: string;
	readonly applies: (call: GeneratedCall, own: Received, connect: Received) => boolean;
}[] = [
	{
		why: "of two faults, Connect reports the one in the chunk that arrives first",
		applies: ({ chunks, faults }, own, connect) =>
			chunks.length > 1 &&
			["long", "twice", "end", "zeros"].some((fault) => faults.includes(fault)) &&
			hasFailed(own) &&
			hasFailed(connect),
	},
];

function hasFailed({ status, body, trailers }: Received): boolean {
	const { "grpc-status": code } = trailers;
	return code === undefined
		? status !== 200 || /grpc-status: [1-9]|"error":/.test(body)
		: code !== "0";
}

interface Run {
	readonly taken: number;
	readonly differences: readonly string[];
}

/** Serves generated calls on both paths. `alter` changes what this package has sent. */
async function run(
	calls: readonly number[],
	alter: (own: Received) => Received = (own) => own,
): Promise<Run> {
	const router = createRpcRouter({ ...options, clock: systemClock });
	router.service(ResourceService, behavingService);
	const { handlers } = createConnectRouter(options).service(ResourceService, behavingService);
	const differences: string[] = [];
	let taken = 0;
	for (const seed of calls) {
		const call = generatedCall(seed);
		const own = await byOwnPath(router, call);
		if (own === undefined) {
			continue;
		}
		taken += 1;
		const connect = await byConnect(handlers, call);
		const altered = alter(own);
		const differs = JSON.stringify(sorted(altered)) !== JSON.stringify(sorted(connect));
		if (differs && !accepted.some(({ applies }) => applies(call, altered, connect))) {
			differences.push(
				`${replay(seed)}\n${JSON.stringify({ call: described(call), own: altered, connect }, null, 1)}`,
			);
		}
	}
	return { taken, differences };
}

function described({ chunks, ...head }: GeneratedCall): object {
	return { ...head, chunks: chunks.map((chunk) => Buffer.from(chunk).toString("latin1")) };
}

function sorted(received: Received): object {
	const byName = (fields: Received["headers"]) => Object.entries(fields).sort();
	return [received.status, received.body, byName(received.headers), byName(received.trailers)];
}

describe("a call", () => {
	it("has the same response as from Connect: status, headers, trailers and bytes", async () => {
		const calls = seeds(600);
		const { taken, differences } = await run(calls);
		expect(differences.slice(0, 3).join("\n")).toBe("");
		expect(taken).toBeGreaterThan(calls.length / 2);
	});

	it("has the same response when errors are corrected before they are sent", async () => {
		const correctError = (error: ConnectError) => {
			Object.assign(error, { rawMessage: error.rawMessage.slice(0, 3) });
		};
		const router = createRpcRouter({ ...options, clock: systemClock, correctError });
		router.service(ResourceService, behavingService);
		for (const seed of seeds(100)) {
			const call = generatedCall(seed);
			const own = await byOwnPath(router, call);
			if (own !== undefined && call.chunks.length < 2) {
				expect(sorted(own)).toEqual(sorted(await byConnect(router.handlers, call)));
			}
		}
	});

	const faults: Readonly<Record<string, (own: Received) => Received>> = {
		"a trailer is lost": (own) => ({ ...own, trailers: { ...own.trailers, "x-trailer": "" } }),
		"a status differs for a refusal": (own) => ({
			...own,
			status: own.status === 403 ? 500 : own.status,
		}),
		"a byte is lost": (own) => ({ ...own, body: own.body.slice(0, -1) }),
		"an error has another code": (own) => ({
			...own,
			trailers: Object.fromEntries(
				Object.entries(own.trailers).map(([name, value]) => [
					name,
					name === "grpc-status" && value === "7" ? "2" : value,
				]),
			),
		}),
	};
	for (const [fault, alter] of Object.entries(faults)) {
		it(`does not pass for the same if ${fault}`, async () => {
			const { differences } = await run(seeds(150), alter);
			expect(differences).not.toEqual([]);
		});
	}
});

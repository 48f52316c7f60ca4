/** Headers and trailers whose names are those of properties of every object. */
import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { describe, expect, it } from "vitest";
import { openSession } from "../raw-calls.fixture.ts";
import { startUpstream } from "./raw-upstream.fixture.ts";
import { startReadyAgent } from "./started-agent.fixture.ts";

const names = ["__proto__", "constructor", "hasownproperty", "tostring", "valueof"] as const;

/** One field for each name. */
const fields: Readonly<Record<string, string>> = Object.fromEntries(
	names.map((name) => [name, `the value of ${name}`]),
);

/** Those of some fields that have one of the names. */
function named(all: Iterable<readonly [string, unknown]>): unknown {
	return Object.fromEntries([...all].filter(([name]) => Object.hasOwn(fields, name)));
}

/** The pairs of a flat list. */
function* pairs(raw: readonly string[]): Generator<readonly [string, unknown]> {
	for (let index = 0; index < raw.length; index += 2) {
		yield [raw[index] ?? "", raw[index + 1]];
	}
}

/** A server that responds with the fields, as headers and as trailers, and an agent of it. */
async function start() {
	const upstream = await startUpstream((stream) => {
		stream.respond(
			{ ":status": 200, "content-type": "application/grpc", ...fields },
			{ waitForTrailers: true },
		);
		stream.once("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0", ...fields }));
		stream.resume().end();
	});
	return { upstream, agent: await startReadyAgent([upstream.address]) };
}

const path = "/test.v1.TestService/Test";
const head = { "content-type": "application/grpc", te: "trailers" };

describe("an agent passes every name on, over", () => {
	it("HTTP/2", async () => {
		const { upstream, agent } = await start();
		const stream = openSession(agent.address).request({
			...{ ":method": "POST", ":path": path, ...head },
			...fields,
		});
		stream.end();
		const trailed = once(stream, "trailers");
		const [headers] = await once(stream, "response");
		const [trailers] = await trailed;
		expect(named(Object.entries(upstream.calls[0] ?? {}))).toEqual(fields);
		expect(named(Object.entries(headers))).toEqual(fields);
		expect(named(Object.entries(trailers))).toEqual(fields);
	});

	it("HTTP/1.1", async () => {
		const { upstream, agent } = await start();
		const request = httpRequest(`${agent.address}${path}`, {
			method: "POST",
			headers: [...Object.entries({ ...head, host: "localhost", ...fields })].flat(),
		});
		request.end();
		const [response]: IncomingMessage[] = await once(request, "response");
		response?.resume();
		await once(response ?? request, "end");
		expect(named(Object.entries(upstream.calls[0] ?? {}))).toEqual(fields);
		expect(named(pairs(response?.rawHeaders ?? []))).toEqual(fields);
		expect(named(pairs(response?.rawTrailers ?? []))).toEqual(fields);
	});
});

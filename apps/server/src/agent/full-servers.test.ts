/** Agents in front of servers that accept few calls at the same time. */
import type { ServerHttp2Stream } from "node:http2";
import { expect, it } from "vitest";
import { openSession, post, type RawCall } from "../raw-calls.fixture.ts";
import { type RawHandler, startUpstream } from "./raw-upstream.fixture.ts";
import { readiness, startReadyAgent, startTestAgent } from "./started-agent.fixture.ts";

const path = "/test.v1.TestService/Test";

function respond(stream: ServerHttp2Stream): void {
	stream.respond({ ":status": 200, "content-type": "application/json" });
	stream.end("{}");
}

it("refuse calls beyond what a server accepts on all connections, and name the server and its limit", async () => {
	const held: ServerHttp2Stream[] = [];
	const hold: RawHandler = (stream) => {
		stream.resume();
		held.push(stream);
	};
	const upstream = await startUpstream(hold, { maxConcurrentStreams: 1 });
	// Two connections are enough for them, if a server accepts usual numbers.
	const agent = await startReadyAgent([upstream.address], { forwardingLimits: { calls: 80 } });
	const session = openSession(agent.address);
	const calls: RawCall[] = [];
	while (held.length < 2) {
		const before = held.length;
		const call = post(session, path, "{}");
		let hasEnded = false;
		void call.ended.then(() => {
			hasEnded = true;
		});
		// It is refused if a health check has the last place.
		await expect.poll(() => hasEnded || held.length > before).toBe(true);
		if (!hasEnded) {
			calls.push(call);
		}
	}
	const refused = await post(session, path, "{}").ended;
	expect(refused.status).toBe("503");
	expect(refused.body).toContain(
		`the call was not executed: ${upstream.address} accepts no more calls: its limit of concurrent streams is 1`,
	);
	expect(upstream.sessions.size).toBeLessThanOrEqual(3);
	// The server is well: the agent gives it the next call as soon as one has ended.
	for (const stream of held.splice(0)) {
		respond(stream);
	}
	for (const { ended } of calls) {
		expect((await ended).status).toBe("200");
	}
	const next = post(session, path, "{}");
	await expect.poll(() => held.length).toBe(1);
	for (const stream of held) {
		respond(stream);
	}
	expect((await next.ended).status).toBe("200");
});

it("open one connection to a server that accepts none, and say so", async () => {
	const upstream = await startUpstream(respond, { maxConcurrentStreams: 0 });
	const agent = await startTestAgent([upstream.address]);
	await readiness(agent.address, /accepts no calls: its limit of concurrent streams is 0/);
	const session = openSession(agent.address);
	for (let count = 0; count < 20; count += 1) {
		const { status, body } = await post(session, path, "{}").ended;
		expect(status).toBe("503");
		expect(body).toContain(`${upstream.address} accepts no calls`);
	}
	expect(upstream.sessions.size).toBeLessThan(5);
});

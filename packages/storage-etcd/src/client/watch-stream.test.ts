import { createClient, createRouterTransport } from "@connectrpc/connect";
import { FakeClock } from "@plinth/runtime/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { Watch } from "../gen/etcdserverpb/rpc_pb.ts";
import { watchStream } from "./watch-stream.ts";

const events = [{ kv: { key: Buffer.from("key") } }];

/** A watch at a member that responds to each progress request with a revision, or sends an event instead. */
function follow(known: () => bigint, revisionOf: (request: number) => bigint | undefined) {
	const clock = new FakeClock();
	const transport = createRouterTransport(({ service }) => {
		service(Watch, {
			async *watch(requests) {
				let request = 0;
				for await (const { requestUnion } of requests) {
					if (requestUnion.case === "createRequest") {
						yield { created: true, header: { revision: 1n } };
						continue;
					}
					const revision = revisionOf(request);
					request += 1;
					yield revision === undefined
						? { events, header: { revision: 1n } }
						: { header: { revision } };
				}
			},
		});
	});
	const end = new AbortController();
	onTestFinished(() => end.abort());
	const endpoint = { url: "http://member", watch: createClient(Watch, transport) };
	let failure: unknown;
	let responses = 0;
	void (async () => {
		try {
			const options = { signal: end.signal, known };
			for await (const _ of watchStream(endpoint, { key: Buffer.from("key") }, clock, options)) {
				responses += 1;
			}
		} catch (error) {
			failure = error;
		}
	})();
	return { clock, failure: () => failure, responses: () => responses };
}

describe("a watch", () => {
	it("ends if its member stays behind what the cluster is known to have", async () => {
		let known = 7n;
		const { clock, failure, responses } = follow(
			() => known,
			() => 7n,
		);
		await clock.advanceAsync(60_000);
		expect(failure()).toBeUndefined();
		expect(responses()).toBe(61);
		known = 8n;
		await clock.advanceAsync(6_000);
		expect(failure()).toMatchObject({
			message: expect.stringMatching(/http:\/\/member lags: .* revision 7, .* revision 8/),
			outcome: "unknown",
		});
	});

	it.each<[string, (request: number) => bigint | undefined]>([
		["while its member is some requests behind", (request) => BigInt(100 + request - 3)],
		[
			// The first thirty are events that were sent before: each response is received thirty requests after its own.
			"if the responses of a current member are received late",
			(request) => (request < 30 ? undefined : BigInt(100 + request - 30)),
		],
	])("continues %s", async (_, answer) => {
		let known = 100n;
		const { clock, failure } = follow(() => known++, answer);
		await clock.advanceAsync(60_000);
		expect(failure()).toBeUndefined();
	});

	it("ends if its member lags although it has not responded to some requests", async () => {
		let known = 100n;
		const { clock, failure } = follow(
			() => known++,
			(request) => (request < 20 ? undefined : 100n),
		);
		await clock.advanceAsync(20_000);
		expect(failure()).toBeUndefined();
		await clock.advanceAsync(20_000);
		expect(failure()).toBeDefined();
	});
});

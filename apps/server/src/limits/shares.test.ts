import { once } from "node:events";
import { tokenHash } from "@plinth/resource-service";
import { describe, expect, it } from "vitest";
import { musicModule } from "../../testdata/music.ts";
import { filesOf } from "../certificates.fixture.ts";
import {
	metric,
	metricReaches,
	openSession,
	openSocket,
	post,
	postText,
} from "../raw-calls.fixture.ts";
import { startServer } from "../started-server.fixture.ts";

const play = "/music.v1.JukeboxService/Play";
const inFlight = "plinth_calls_in_flight";
const refused = "plinth_calls_refused_total";

describe("calls in flight, above three quarters of the limit,", () => {
	it("are refused to a subject that uses a quarter, and not to others", async () => {
		const released = Promise.withResolvers<void>();
		const token = (name: string) =>
			`  - { subject: ${name}, sha256: ${tokenHash(name)}, policies: [all] }\n`;
		const { access } = filesOf({
			access: `policies: { all: [{ operations: ["*"] }] }\ntokens:\n${token("alice")}${token("bob")}`,
		});
		const { address } = await startServer({
			stopLimitMs: 200,
			modules: [musicModule(released.promise)],
			access: { file: access },
			callLimits: { callsInFlight: 16 },
		});
		const as = (name: string) => {
			const session = openSession(address);
			return () => post(session, play, "{}", { headers: { authorization: `Bearer ${name}` } });
		};
		const [alice, bob] = [as("alice"), as("bob")];
		// Twelve of sixteen: until then anybody may take what there is.
		const first = Array.from({ length: 12 }, alice);
		const more = await alice().ended;
		expect(more.status).toBe("429");
		expect(more.body).toContain(
			"the server is overloaded, and 12 calls from alice are in flight: the limit is 4 under load; wait for some to finish",
		);
		const others = Array.from({ length: 4 }, bob);
		// There are as many as there may be at all now.
		expect((await bob().ended).body).toContain(
			"the server has reached its limit of 16 calls in flight",
		);
		released.resolve();
		for (const { ended } of [...first, ...others]) {
			expect((await ended).status).toBe("200");
		}
		expect((await alice().ended).status).toBe("200");
	});

	it("count by connection if no tokens are required, never below its streams", async () => {
		const { address } = await startServer({
			stopLimitMs: 200,
			modules: [musicModule(new Promise(() => {}))],
			callLimits: { callsInFlight: 16 },
			limits: { streamsPerConnection: 6 },
		});
		const crowd = await openSocket(address);
		crowd.write(postText(play, "{}").repeat(12));
		await metricReaches(address, inFlight, 12);
		crowd.write(postText(play, "{}"));
		await metricReaches(address, refused, 1, 'why="calls-of-subject"');
		const other = await openSocket(address);
		other.write(postText(play, "{}").repeat(4));
		await metricReaches(address, inFlight, 16);
		expect(await metric(address, refused)).toBe(1);
		const closed = once(crowd, "close");
		crowd.destroy();
		await closed;
	});
});

import { systemRuntime } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import { describe, expect, it, vi } from "vitest";
import { enveloped, metricReaches, openSession, post } from "../raw-calls.fixture.ts";
import { startServer } from "../started-server.fixture.ts";

const path = "/plinth.server.v1.ServerService/WatchOverview";
const contentType = "application/connect+json";

/** The times of the overviews in the body of a stream. */
function timesOf(body: string): readonly number[] {
	return [...body.matchAll(/"takenAt":"([^"]*)"/g)].map(([, time = ""]) => Date.parse(time));
}

describe("a viewer that does not read", () => {
	it("gets the overview that was waiting for it, and then the newest: none that it has missed", async () => {
		const clock = new FakeClock({ nowMs: Date.now() });
		const server = await startServer({ runtime: { ...systemRuntime, clock } });
		const session = openSession(server.address, { initialWindowSize: 0 });
		const { stream } = post(session, path, enveloped("{}"), { contentType });
		let body = "";
		stream.on("data", (data: string) => {
			body += data;
		});
		await metricReaches(server.address, "plinth_streams_open", 1);
		const begunMs = clock.now();
		for (let seconds = 0; seconds < 20; seconds += 1) {
			clock.advance(1_000);
			await new Promise((resolve) => setImmediate(resolve));
		}
		const readMs = clock.now();
		session.settings({ initialWindowSize: 1_000_000 });
		await vi.waitFor(() => expect(timesOf(body)).toEqual([begunMs, readMs]), 300_000);
	});
});

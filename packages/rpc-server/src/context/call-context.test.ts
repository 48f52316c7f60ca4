import { ResourceService } from "@plinth/proto";
import { Deadlines } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import { expect, it } from "vitest";
import { CallContext } from "./call-context.ts";
import { CallValues } from "./call-values.ts";

function contextWith(timeoutMs: number, clock: FakeClock): CallContext {
	return new CallContext(
		{
			method: ResourceService.method.read,
			protocolName: "grpc",
			head: {
				...{ httpVersion: "2.0", method: "POST", target: "/", url: "http://localhost/" },
				header: () => undefined,
				headers: () => [],
			},
			values: new CallValues(),
			timeoutMs,
			responseHeader: {},
			responseTrailer: {},
		},
		clock,
		new Deadlines(clock),
	);
}

it("tells the time that is left in whole milliseconds, which clients can pass on", () => {
	const clock = new FakeClock();
	const { timeoutMs } = contextWith(1_000, clock);
	const left = [timeoutMs()];
	for (const byMs of [0.3, 999.6, 0.1, 2]) {
		clock.advance(byMs);
		left.push(timeoutMs());
	}
	expect(left).toEqual([1_000, 1_000, 1, 0, -2].map((ms) => expect.closeTo(ms, 9)));
	expect(left.every(Number.isInteger)).toBe(true);
});

it("has a signal that is aborted already if it is accessed after the deadline, with the deadline as its reason", () => {
	const clock = new FakeClock();
	const context = contextWith(10, clock);
	clock.advance(11);
	context.abort(new Error("too late"));
	expect([context.signal.aborted, String(context.signal.reason)]).toEqual([
		true,
		"ConnectError: [deadline_exceeded] the operation timed out",
	]);
});

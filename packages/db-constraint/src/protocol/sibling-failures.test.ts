import { Code, ConnectError } from "@connectrpc/connect";
import { silentLogger } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import { expect, it } from "vitest";
import { SiblingFailures } from "./sibling-failures.ts";

const address = "http://10.0.0.2:7576";
const failure = new ConnectError("no server responds", Code.Unavailable);

function failuresOn(clock: FakeClock) {
	const warned: unknown[] = [];
	const logger = { ...silentLogger, warn: (fields: object) => warned.push(fields) };
	return { failures: new SiblingFailures({ clock, logger }), warned };
}

it("a server that can't be reached for longer than a minute is named in a warning once a minute", () => {
	const clock = new FakeClock();
	const { failures, warned } = failuresOn(clock);
	for (let second = 0; second < 150; second++) {
		failures.failed(address, failure);
		clock.advance(1_000);
	}
	expect(warned).toMatchObject([
		{ address, failingForMs: 60_000 },
		{ address, failingForMs: 120_000 },
	]);
});

it("a server that was reached in between, or has gone, is not in a warning", () => {
	const clock = new FakeClock();
	const { failures, warned } = failuresOn(clock);
	const pauses = [() => failures.succeeded(address), () => failures.keepOnly(new Set())];
	for (const pause of pauses) {
		failures.failed(address, failure);
		clock.advance(59_000);
		pause();
		failures.failed(address, failure);
		clock.advance(59_000);
		failures.failed(address, failure);
		failures.keepOnly(new Set([address]));
		failures.succeeded(address);
	}
	expect(warned).toEqual([]);
});

import { FakeClock } from "@plinth/runtime/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
	type ArrivingRequest,
	type IncompleteMessage,
	IncompleteMessages,
} from "./incomplete-messages.ts";

const kibibyte = 1024;
const messageBytes = 1024 * kibibyte;

/** A request that notes what is done to it. */
class Request implements ArrivingRequest {
	readonly usage: object;
	isPaused = false;
	isRefused = false;
	readonly #onRefused: (() => void) | undefined;

	constructor(usage: object, onRefused?: () => void) {
		this.usage = usage;
		this.#onRefused = onRefused;
	}

	readonly body = {
		pause: () => {
			this.isPaused = true;
		},
		resume: () => {
			this.isPaused = false;
		},
		failed: new AbortController().signal,
	};

	refuse(): void {
		this.isRefused = true;
		this.#onRefused?.();
	}
}

const callers = new Map<string, object>();

/** A caller has sent the first KiB of a message. */
function begin(messages: IncompleteMessages, name: string, size?: number) {
	const usage = callers.get(name) ?? {};
	callers.set(name, usage);
	const request = new Request(usage);
	const message = messages.begin(request);
	message.update(kibibyte, size, messageBytes);
	return { request, message };
}

describe("incomplete messages", () => {
	it("reserve up to half of the limit for one caller, and leave a quarter to others", () => {
		const messages = new IncompleteMessages(16 * messageBytes, messageBytes, new FakeClock());
		const many = Array.from({ length: 12 }, () => begin(messages, "mallory", messageBytes));
		expect(many.filter(({ request }) => !request.isPaused)).toHaveLength(8);
		const others = Array.from({ length: 6 }, () => begin(messages, "alice", messageBytes));
		expect(others.filter(({ request }) => !request.isPaused)).toHaveLength(4);
		expect(messages.waiting).toBe(6);
	});

	it("continue with the caller that reserves the least", () => {
		const messages = new IncompleteMessages(4 * messageBytes, messageBytes, new FakeClock());
		const first = [1, 2].map(() => begin(messages, "mallory", messageBytes));
		const waits = begin(messages, "mallory", messageBytes);
		begin(messages, "bob", messageBytes);
		const alice = begin(messages, "alice", messageBytes);
		expect([waits.request.isPaused, alice.request.isPaused]).toEqual([true, true]);
		first[0]?.message.complete();
		expect(alice.request.isPaused).toBe(true);
		first[0]?.message.end();
		expect([waits.request.isPaused, alice.request.isPaused]).toEqual([true, false]);
	});

	it("replace one that is incomplete for more than 5 s, and not one that has just begun", async () => {
		const clock = new FakeClock();
		const messages = new IncompleteMessages(4 * messageBytes, messageBytes, clock);
		const old = ["a", "b", "c"].map((each) => begin(messages, each, messageBytes));
		await clock.advance(60_000);
		const waits = begin(messages, "d", messageBytes);
		await clock.advance(4_000);
		expect(waits.request.isPaused).toBe(true);
		await clock.advance(1_000);
		expect(old.map(({ request }) => request.isRefused)).toEqual([true, false, false]);
		expect(waits.request.isPaused).toBe(false);
		const next = begin(messages, "d", messageBytes);
		await clock.advance(60_000);
		// That would give its caller more than the others have.
		expect(next.request.isPaused).toBe(true);
		waits.message.end();
		expect(next.request.isPaused).toBe(false);
	});

	it("lose the oldest of the caller with the most first bytes", () => {
		const messages = new IncompleteMessages(4 * messageBytes, messageBytes, new FakeClock());
		const size = 60 * kibibyte;
		const alice = begin(messages, "alice", size);
		const many = Array.from({ length: 17 }, () => begin(messages, "mallory", size));
		expect(alice.request.isRefused).toBe(false);
		expect(many.map(({ request }) => request.isRefused)).toEqual(many.map((_, at) => at === 0));
		expect(messages.bytes).toBe(17 * size);
	});

	it("of unknown size reserve for the largest when they turn out to be large", () => {
		const messages = new IncompleteMessages(4 * messageBytes, messageBytes, new FakeClock());
		const { message } = begin(messages, "alice", undefined);
		expect(messages.bytes).toBe(kibibyte);
		message.update(65 * kibibyte, undefined, messageBytes);
		expect(messages.bytes).toBe(messageBytes);
		message.update(100 * kibibyte, undefined, messageBytes);
		message.end();
		expect([messages.bytes, messages.callers]).toEqual([0, 0]);
	});

	it("keep the limits, never pause what is reserved, refuse those with the most, and all end", async () => {
		const limit = 8 * messageBytes;
		const step = fc.record({
			kind: fc.constantFrom("begin", "begin", "begin", "read", "complete", "end", "tick"),
			usage: fc.nat(5),
			size: fc.oneof(
				fc.constant(undefined),
				fc.integer({ min: 1, max: 70 * kibibyte }),
				fc.integer({ min: 1, max: messageBytes }),
			),
			bytes: fc.integer({ min: 1, max: 64 * kibibyte }),
			which: fc.nat(),
		});
		await fc.assert(
			fc.asyncProperty(fc.array(step, { maxLength: 200, size: "max" }), async (steps) => {
				const clock = new FakeClock();
				const messages = new IncompleteMessages(limit, messageBytes, clock);
				interface Open {
					readonly request: Request;
					readonly message: IncompleteMessage;
					readonly size: number | undefined;
					received: number;
				}
				let open: Open[] = [];
				const heldBy = (usage: object, kind: "firstBytes" | "reservedBytes") =>
					open
						.filter(({ request, message }) => request.usage === usage && !message.isEnded)
						.reduce((sum, { message }) => sum + message[kind], 0);
				const hasMost = (request: Request, lost: IncompleteMessage) =>
					(["firstBytes", "reservedBytes"] as const).some((kind) => {
						const most = heldBy(request.usage, kind) + lost[kind];
						return open.every(
							(each) => each.message.isComplete || heldBy(each.request.usage, kind) <= most,
						);
					});
				const holders = Array.from({ length: 6 }, () => ({}));
				for (const { kind, usage, size, bytes, which } of steps) {
					const chosen = open[which % Math.max(1, open.length)];
					if (kind === "begin") {
						const request: Request = new Request(holders[usage] ?? {}, () => {
							const lost = open.find((each) => each.request === request);
							expect(lost && hasMost(request, lost.message)).toBe(true);
						});
						const message = messages.begin(request);
						const received = Math.min(bytes, size ?? bytes);
						open.push({ request, message, size, received });
						message.update(received, size, messageBytes);
					} else if (kind === "tick") {
						await clock.advance((which % 7) * 1_000);
					} else if (chosen !== undefined && kind === "end") {
						chosen.message.end();
					} else if (chosen !== undefined && !chosen.request.isPaused) {
						const whole = chosen.size ?? messageBytes;
						chosen.received =
							kind === "read" ? Math.min(whole, chosen.received + bytes) : chosen.received;
						chosen.message.update(chosen.received, chosen.size, messageBytes);
						if (!chosen.request.isPaused && kind === "complete") {
							chosen.message.complete();
						}
					}
					open = open.filter(({ message }) => !message.isEnded);
					const sum = (field: "firstBytes" | "reservedBytes") =>
						open.reduce((total, { message }) => total + message[field], 0);
					expect(messages.bytes).toBe(sum("firstBytes") + sum("reservedBytes"));
					expect(sum("firstBytes")).toBeLessThanOrEqual(limit / 4);
					expect(sum("reservedBytes")).toBeLessThanOrEqual((limit * 3) / 4);
					for (const { request, message, received } of open) {
						expect(request.isPaused).toBe(message.wantedBytes > 0);
						if (!request.isPaused && !message.isComplete && message.reservedBytes > 0) {
							expect(received).toBeLessThanOrEqual(message.firstBytes + message.reservedBytes);
						}
					}
					expect(messages.waiting).toBe(open.filter(({ request }) => request.isPaused).length);
				}
				// Those that are read on end, one after the other: all others go on.
				while (open.length > 0) {
					const next = open.find(({ request }) => !request.isPaused);
					expect(next).toBeDefined();
					next?.message.end();
					open = open.filter(({ message }) => !message.isEnded);
				}
				expect([messages.bytes, messages.waiting, messages.callers]).toEqual([0, 0, 0]);
			}),
			{ numRuns: 100, seed: 1, endOnFailure: true },
		);
	});
});

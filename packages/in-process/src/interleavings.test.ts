import { getEventListeners } from "node:events";
import { Code, ConnectError, createClient, type HandlerContext } from "@connectrpc/connect";
import { FakeClock, seededRandom } from "@plinth/runtime/testing";
import fc from "fast-check";
import { expect, it } from "vitest";
import { ProbeService } from "../testdata/src/gen/probe_pb.ts";
import { createInProcessClient } from "./client.ts";
import { seen } from "./conformance/behavior.fixture.ts";
import { createInProcessTransport } from "./transport.ts";

/*
 * Many concurrent calls, each with a script, on a scheduler that runs tasks in an order that a seed
 * determines. For any order: each call has exactly one outcome, which is possible for its script; every
 * handler that was started has seen its signal abort and has ended; no listener or timer is left.
 */

const script = fc.record({
	kind: fc.constantFrom("unary", "serverStream"),
	/** How many messages a server stream has. */
	messages: fc.nat({ max: 3 }),
	/** What the handler does after them. */
	ending: fc.constantFrom("return", "throw", "hang"),
	/** Steps of the scheduler until the caller aborts; never if absent. */
	abortAfter: fc.option(fc.nat({ max: 40 }), { nil: undefined }),
	timeoutMs: fc.constantFrom(undefined, 1_000),
	clients: fc.constantFrom("createClient", "createInProcessClient"),
	/** How many messages of a stream the caller reads before it leaves; all if absent. */
	leaveAfter: fc.option(fc.nat({ max: 2 }), { nil: undefined }),
});

type Script = typeof script extends fc.Arbitrary<infer T> ? T : never;

class Shuffler {
	readonly #tasks: (() => void)[] = [];
	readonly #random;

	constructor(seed: number) {
		this.#random = seededRandom(seed);
	}

	schedule(task: () => void): void {
		this.#tasks.push(task);
	}

	turn(): undefined {}

	/** Runs one of the tasks and its continuations. Returns false if there was none. */
	async step(): Promise<boolean> {
		const [task] = this.#tasks.splice(Math.floor(this.#random.next() * this.#tasks.length), 1);
		task?.();
		await new Promise(setImmediate);
		return task !== undefined;
	}
}

async function play(scripts: readonly Script[], seed: number): Promise<void> {
	const clock = new FakeClock();
	const scheduler = new Shuffler(seed);
	const shutdown = new AbortController();
	const contexts: HandlerContext[] = [];
	let left = 0;

	/** The end of every handler. */
	async function end(ending: string, { signal }: HandlerContext): Promise<void> {
		if (ending === "throw") {
			throw new ConnectError("as planned", Code.Aborted);
		}
		if (ending === "hang") {
			await new Promise((_, reject) => {
				signal.addEventListener("abort", () => reject(signal.reason));
				if (signal.aborted) {
					reject(signal.reason);
				}
			});
		}
	}

	function endingOf(context: HandlerContext): string {
		contexts.push(context);
		return context.requestHeader.get("x-ending") ?? "return";
	}

	const transport = createInProcessTransport(
		(router) => {
			router.service(ProbeService, {
				async unary(_, context) {
					const ending = endingOf(context);
					try {
						await end(ending, context);
						return {};
					} finally {
						left += 1;
					}
				},
				async *serverStream({ number }, context) {
					const ending = endingOf(context);
					try {
						for (let sent = 0; sent < number; sent++) {
							yield { number: sent };
						}
						await end(ending, context);
					} finally {
						left += 1;
					}
				},
			});
		},
		{ clock, scheduler, shutdownSignal: shutdown.signal },
	);
	const makers = {
		createClient: createClient(ProbeService, transport),
		createInProcessClient: createInProcessClient(ProbeService, transport),
	};

	const signals: AbortController[] = [];
	const outcomes = scripts.map(async (planned) => {
		const { kind, messages, ending, timeoutMs } = planned;
		const client = makers[planned.clients];
		const controller = new AbortController();
		signals.push(controller);
		const options = {
			headers: { "x-ending": ending },
			signal: controller.signal,
			...(timeoutMs && { timeoutMs }),
		};
		async function read(stream: AsyncIterable<{ readonly number: number }>) {
			const leaveAfter = leavesAfter(planned);
			let number = 0;
			if (leaveAfter === 0) {
				const reader = stream[Symbol.asyncIterator]();
				const waiting = reader.next();
				await reader.return?.();
				return (await waiting).done === true ? "left" : "a message came late";
			}
			for await (const message of stream) {
				expect(message.number).toBe(number);
				number += 1;
				if (number === leaveAfter) {
					return "left";
				}
			}
			return number === messages ? "ok" : "messages were lost";
		}
		try {
			switch (kind) {
				case "unary":
					await client.unary({}, options);
					return "ok";
				case "serverStream":
					return await read(client.serverStream({ number: messages }, options));
			}
		} catch (error) {
			return seen(error);
		}
		return "unreachable";
	});

	await new Promise(setImmediate);
	let quiet = 0;
	for (let step = 0; quiet < 3 || step < 42; step++) {
		for (const [index, { abortAfter }] of scripts.entries()) {
			if (abortAfter === step) {
				signals[index]?.abort("as planned");
			}
		}
		quiet = (await scheduler.step()) ? 0 : quiet + 1;
	}
	// Calls that hang and are not aborted end at their deadline or, without one, at the shutdown.
	await clock.advanceAsync(1_000);
	while (await scheduler.step()) {
		// Until nothing is due.
	}
	shutdown.abort(new ConnectError("over", Code.Unavailable));
	while (await scheduler.step()) {
		// Until nothing is due.
	}

	for (const [index, outcome] of (await Promise.all(outcomes)).entries()) {
		const planned = scripts[index];
		expect(planned === undefined ? [] : possibleOutcomes(planned)).toContain(outcome);
	}
	expect(left).toBe(contexts.length);
	expect(contexts.every(({ signal }) => signal.aborted)).toBe(true);
	for (const { signal } of [...signals, shutdown]) {
		expect(getEventListeners(signal, "abort")).toEqual([]);
	}
	expect(clock.nextTimerMs()).toBeUndefined();
}

/** After how many messages the caller leaves its stream; `undefined` if it does not. */
function leavesAfter({ kind, clients, messages, leaveAfter }: Script): number | undefined {
	const canLeave = clients === "createInProcessClient" && kind === "serverStream";
	return canLeave && leaveAfter !== undefined && leaveAfter <= messages ? leaveAfter : undefined;
}

function possibleOutcomes(planned: Script): readonly string[] {
	const { ending, abortAfter, timeoutMs } = planned;
	const leaveAfter = leavesAfter(planned);
	if (leaveAfter === 0) {
		return ["left"];
	}
	const endings = {
		return: "ok",
		throw: "Aborted: as planned",
		hang:
			timeoutMs === undefined ? "Unavailable: over" : "DeadlineExceeded: the operation timed out",
	};
	const end = leaveAfter === undefined ? endings[ending] : "left";
	return abortAfter === undefined ? [end] : [end, "Canceled: as planned"];
}

it("ends every call once, in any order of what happens", async () => {
	await fc.assert(
		fc.asyncProperty(fc.array(script, { minLength: 1, maxLength: 6 }), fc.integer(), play),
		{ numRuns: 50 },
	);
});

/** The rights that an agent uses are those that a server had in the last ten seconds, whatever the network does. */
import { setImmediate } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import {
	type FollowAccessResponse,
	FollowAccessResponseSchema,
} from "@plinth/proto/gen/plinth/agent/v1/agent_cache_service_pb.js";
import { type Random, silentLogger } from "@plinth/runtime";
import { FakeClock, seededRandom } from "@plinth/runtime/testing";
import { forEachSeed } from "@plinth/test-support";
import { describe, expect, it } from "vitest";
import { cacheLimits } from "./cache-limits.ts";
import { FollowedTokens, type FollowedTokensOptions } from "./followed-tokens.ts";

type FollowAccess = FollowedTokensOptions["client"]["followAccess"];

/** What a token may do from a time on; `subject` is another one for each change, and empty if it was revoked. */
interface Grant {
	readonly sinceMs: number;
	readonly subject: string;
	readonly expiresMs: number;
}

/** How a test changes what arrives at the agent. */
type Fault = (
	message: FollowAccessResponse,
	calledMs: number,
	nowMs: number,
) => FollowAccessResponse;

/** A server, and a network that delays messages, keeps their order, and cuts streams. */
class SimulatedServer {
	readonly grants: Grant[] = [];
	readonly #clock: FakeClock;
	readonly #random: Random;
	readonly #fault: Fault;
	readonly #cuts = new Set<() => void>();
	isReachable = true;
	delayMs = 0;

	constructor(clock: FakeClock, random: Random, fault: Fault) {
		this.#clock = clock;
		this.#random = random;
		this.#fault = fault;
		this.grant();
	}

	get current(): Grant {
		return this.grants.at(-1) ?? { sinceMs: 0, subject: "", expiresMs: 0 };
	}

	grant(expiresMs = Number.POSITIVE_INFINITY): void {
		const subject = `subject ${this.grants.length}`;
		this.grants.push({ sinceMs: this.#clock.monotonic(), subject, expiresMs });
	}

	revoke(): void {
		this.grants.push({ sinceMs: this.#clock.monotonic(), subject: "", expiresMs: 0 });
	}

	cut(): void {
		for (const cut of [...this.#cuts]) {
			cut();
		}
	}

	readonly followAccess: FollowAccess = (_, options) => this.#stream(options?.signal);

	async *#stream(signal: AbortSignal | undefined): AsyncGenerator<FollowAccessResponse> {
		const calledMs = this.#clock.monotonic();
		const arrived: (FollowAccessResponse | ConnectError)[] = [];
		let wake = () => {};
		let lastMs = 0;
		const arrive = (item: FollowAccessResponse | ConnectError) => {
			arrived.push(item);
			wake();
		};
		/** In order, and later. */
		const send = (item: FollowAccessResponse | ConnectError) => {
			lastMs = Math.max(lastMs, this.#clock.monotonic() + this.#random.next() * this.delayMs);
			this.#clock.setTimer(lastMs - this.#clock.monotonic(), () => arrive(item));
		};
		const cut = () => arrive(new ConnectError("the connection was cut", Code.Unavailable));
		this.#cuts.add(cut);
		signal?.addEventListener("abort", cut);
		if (this.isReachable) {
			this.#clock.setTimer(this.#random.next() * this.delayMs, () => this.#serve(send));
		} else {
			cut();
		}
		try {
			for (;;) {
				const item = arrived.shift();
				if (item instanceof ConnectError) {
					throw item;
				}
				if (item !== undefined) {
					yield this.#fault(item, calledMs, this.#clock.monotonic());
				} else {
					await new Promise<void>((resolve) => {
						wake = resolve;
					});
				}
			}
		} finally {
			this.#cuts.delete(cut);
		}
	}

	#serve(send: (item: FollowAccessResponse | ConnectError) => void): void {
		const startedMs = this.#clock.monotonic();
		const grant = this.current;
		let sent = 0;
		const tick = () => {
			const nowMs = this.#clock.monotonic();
			if (this.current !== grant || grant.subject === "" || nowMs >= grant.expiresMs) {
				send(new ConnectError("the token is not known", Code.Unauthenticated));
				return;
			}
			if (sent % 30 === 0) {
				send(
					create(FollowAccessResponseSchema, {
						...(sent === 0 && { policy: { subject: grant.subject } }),
						elapsed: durationFromMs(Math.floor(nowMs - startedMs)),
						...(grant.expiresMs < Number.POSITIVE_INFINITY && {
							expiresIn: durationFromMs(Math.floor(grant.expiresMs - nowMs)),
						}),
					}),
				);
			}
			sent += 1;
			this.#clock.setTimer(100, tick);
		};
		tick();
	}

	/** Whether a token may have rights now that servers have told. */
	allows(subject: string): boolean {
		const nowMs = this.#clock.monotonic();
		const index = this.grants.findIndex((grant) => grant.subject === subject);
		const endMs = this.grants[index + 1]?.sinceMs ?? Number.POSITIVE_INFINITY;
		const expiresMs = this.grants[index]?.expiresMs ?? 0;
		return endMs > nowMs - cacheLimits.rightsMs && nowMs <= expiresMs;
	}
}

/** Lets everything happen that waits for nothing. */
async function settle(): Promise<void> {
	for (let count = 0; count < 5; count += 1) {
		await setImmediate();
	}
}

const noFault: Fault = (message) => message;

/** Runs one history. Returns what was wrong, if anything was. */
async function run(seed: number, fault: Fault): Promise<string | undefined> {
	const random = seededRandom(seed);
	const clock = new FakeClock();
	const server = new SimulatedServer(clock, random, fault);
	const tokens = new FollowedTokens({
		client: server,
		runtime: { clock, random },
		logger: silentLogger,
	});
	const rights = async () => {
		let subject: string | undefined;
		const known = tokens.rightsOf("token").then((followed) => {
			subject = followed?.access?.subject;
		});
		for (let count = 0; count < 40; count += 1) {
			await settle();
			clock.advance(100);
		}
		await known;
		return subject;
	};
	let held: Awaited<ReturnType<typeof tokens.rightsOf>>;
	for (let step = 0; step < 60; step += 1) {
		const chance = random.next();
		if (chance < 0.1) {
			server.grant();
		} else if (chance < 0.15) {
			server.grant(clock.monotonic() + 20_000 * random.next());
		} else if (chance < 0.2) {
			server.revoke();
		} else if (chance < 0.3) {
			server.isReachable = !server.isReachable;
			server.cut();
		} else if (chance < 0.4) {
			server.delayMs = random.next() < 0.5 ? 0 : 30_000 * random.next();
		}
		clock.advance(1_500 * random.next());
		await settle();
		const asked = tokens.rightsOf("token");
		const settled = await Promise.race([asked, settle().then(() => undefined)]);
		held = settled ?? held;
		const subject = held?.access?.subject;
		if (subject !== undefined && !server.allows(subject)) {
			return `step ${step}: ${subject} has rights, and the server has ended them`;
		}
	}
	// With a network that works, what the server says is known.
	Object.assign(server, { isReachable: true, delayMs: 0 });
	server.grant();
	for (let count = 0; count < 200; count += 1) {
		clock.advance(100);
		await settle();
	}
	const last = await rights();
	tokens.close(new ConnectError("the test is over", Code.Unavailable));
	return last === server.current.subject ? undefined : `${last} has rights at the end`;
}

describe("the rights of tokens", () => {
	it("are never older than ten seconds, and become those of the server", async () => {
		await forEachSeed(40, async (seed) => {
			expect(await run(seed, noFault)).toBeUndefined();
		});
	});

	const planted: Readonly<Record<string, Fault>> = {
		"messages count from their arrival": (message, calledMs, nowMs) => ({
			...message,
			elapsed: durationFromMs(nowMs - calledMs),
		}),
		"the expiry is ignored": ({ expiresIn: _, ...message }) => message,
	};

	it.each(Object.entries(planted))("would not be if %s", async (_, fault) => {
		const problems: (string | undefined)[] = [];
		for (let seed = 1; seed <= 200 && !problems.some((each) => each !== undefined); seed += 1) {
			problems.push(await run(seed, fault));
		}
		expect(problems.at(-1)).toContain("the server has ended them");
	});
});

describe("the clock of the agent", () => {
	/** Follows a token whose stream says, every second, how long it has existed by a clock of this speed; the next one fails. */
	async function followed(speed: number) {
		const clock = new FakeClock();
		const runtime = { clock, random: seededRandom(1) };
		let calls = 0;
		let isCut = false;
		const followAccess: FollowAccess = async function* (_, options) {
			calls += 1;
			const startedMs = clock.monotonic();
			const policy = { subject: "subject" };
			for (let isFirst = true; ; isFirst = false) {
				if (isCut) {
					throw new ConnectError("the connection is cut", Code.Unavailable);
				}
				const elapsed = durationFromMs(Math.floor(speed * (clock.monotonic() - startedMs)));
				yield create(FollowAccessResponseSchema, { elapsed, ...(isFirst && { policy }) });
				await new Promise<void>((resolve) => {
					clock.setTimer(1_000, resolve);
					options?.signal?.addEventListener("abort", () => resolve());
				});
			}
		};
		const tokens = new FollowedTokens({ client: { followAccess }, runtime, logger: silentLogger });
		const token = await tokens.rightsOf("token");
		if (token !== undefined) {
			token.uses = 1;
		}
		return {
			clock,
			access: () => token?.access,
			calls: () => calls,
			cut: () => {
				isCut = true;
			},
			async pass(ms: number) {
				for (let passedMs = 0; passedMs < ms; passedMs += 500) {
					clock.advance(500);
					await settle();
				}
			},
		};
	}

	it.each([
		["that of the server runs faster", 3],
		["that of the server runs slower", 0.99],
		["both run equally", 1],
	])("does not change how long rights last if %s", async (_, speed) => {
		const { access, pass, cut, calls } = await followed(speed);
		// The rights themselves last for as long as servers confirm them.
		await pass(cacheLimits.rightsStreamMs + 30_000);
		expect(access()).toBeDefined();
		expect(calls()).toBe(2);
		cut();
		await pass(cacheLimits.rightsMs + 1_000);
		expect(access()).toBeUndefined();
	});

	it("stands still while the machine is suspended, so that no rights last longer than that", async () => {
		const { access, clock, pass } = await followed(1);
		await pass(5_000);
		clock.jump(-3_600_000);
		await pass(5_000);
		const known = access();
		expect(known).toBeDefined();
		clock.jump(60_000);
		// Watches end without another call.
		await pass(1_000);
		expect(known?.ended?.aborted).toBe(true);
		expect(access()).toBeUndefined();
	});
});

describe("the tokens that are followed", () => {
	function start() {
		const clock = new FakeClock();
		const random = seededRandom(1);
		const client = new SimulatedServer(clock, random, noFault);
		const tokens = new FollowedTokens({ client, runtime: { clock, random }, logger: silentLogger });
		return { clock, client, tokens };
	}

	const refuse: FollowAccess = () => {
		throw new ConnectError("the token is not known", Code.Unauthenticated);
	};

	async function follow(clock: FakeClock, tokens: FollowedTokens, token: string | undefined) {
		const followed = tokens.rightsOf(token);
		await settle();
		clock.advance(1);
		return followed;
	}

	it("are limited: the one that was not used for the longest time makes room, unless watches need it", async () => {
		const { clock, tokens } = start();
		const watched = await follow(clock, tokens, "watched");
		if (watched !== undefined) {
			watched.uses = 1;
		}
		const unused = await follow(clock, tokens, "unused");
		for (let count = 2; count <= cacheLimits.tokens; count += 1) {
			await follow(clock, tokens, `token ${count}`);
		}
		expect(tokens.size).toBe(cacheLimits.tokens);
		expect(watched?.access).toBeDefined();
		expect(unused?.access).toBeUndefined();
	});

	it("make no room for one that is refused", async () => {
		const { clock, client, tokens } = start();
		for (let count = 1; count <= cacheLimits.tokens; count += 1) {
			await follow(clock, tokens, `token ${count}`);
		}
		const { followAccess } = client;
		Object.assign(client, { followAccess: refuse });
		for (let count = 1; count <= 10; count += 1) {
			expect(await follow(clock, tokens, `unknown ${count}`)).toBeUndefined();
		}
		Object.assign(client, {
			followAccess: () => {
				throw new Error("a token is followed already");
			},
		});
		for (let count = 1; count <= cacheLimits.tokens; count += 1) {
			expect((await follow(clock, tokens, `token ${count}`))?.access).toBeDefined();
		}
		Object.assign(client, { followAccess });
		expect(await follow(clock, tokens, "one more")).toBeDefined();
		expect(tokens.size).toBe(cacheLimits.tokens);
	});

	it("do not include the calls without a token because an empty one was refused", async () => {
		const { clock, client, tokens } = start();
		const { followAccess } = client;
		Object.assign(client, { followAccess: refuse });
		expect(await follow(clock, tokens, "")).toBeUndefined();
		Object.assign(client, { followAccess });
		expect(await follow(clock, tokens, undefined)).toBeDefined();
	});

	it("are limited while it is not known whether they are valid: calls are forwarded then", async () => {
		const { tokens, client } = start();
		client.delayMs = 1_000;
		const opening = Array.from({ length: cacheLimits.openingTokens }, (_, index) =>
			tokens.rightsOf(`token ${index}`),
		);
		expect(opening).toHaveLength(cacheLimits.openingTokens);
		expect(await tokens.rightsOf("one more")).toBeUndefined();
		expect(tokens.size).toBe(cacheLimits.openingTokens);
		tokens.close(new ConnectError("the test is over", Code.Unavailable));
		await Promise.all(opening);
	});

	it("are forgotten when they were not used for a while", async () => {
		const { clock, tokens } = start();
		await follow(clock, tokens, "token");
		for (let passedMs = 0; passedMs <= 2 * cacheLimits.tokenIdleMs; passedMs += 1_000) {
			clock.advance(1_000);
			await settle();
		}
		expect(tokens.size).toBe(0);
	});

	it("are not tried again at once after they were refused", async () => {
		const { clock, client, tokens } = start();
		client.revoke();
		let calls = 0;
		const { followAccess } = client;
		Object.assign(client, {
			followAccess: (...args: Parameters<typeof followAccess>) => {
				calls += 1;
				return followAccess(...args);
			},
		});
		expect(await follow(clock, tokens, "token")).toBeUndefined();
		expect(await follow(clock, tokens, "token")).toBeUndefined();
		expect(calls).toBe(1);
	});
});

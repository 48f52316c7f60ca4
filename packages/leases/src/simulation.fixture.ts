import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createInProcessTransport } from "@plinth/in-process";
import { LeaseService } from "@plinth/proto";
import {
	type Clock,
	type Fence,
	type LeaseHold,
	LocalLeases,
	LocalTimedLeases,
	type Random,
	silentLogger,
	sleep,
	type TimedLeases,
} from "@plinth/runtime";
import {
	type SeededRuntime,
	SkewedClock,
	seededRandom,
	seededRuntime,
} from "@plinth/runtime/testing";
import { createLeaseService } from "./lease-service.ts";
import { RemoteLeases } from "./remote-leases.ts";

/** Faults that a check must find. */
export type PlantedFault =
	/** A server grants leases at once, though those of the process before it may be live. */
	| "grants-at-start"
	/** Leases last half as long as their holders think. */
	| "expires-early"
	/** A lease is renewed for holders that have lost it. */
	| "renews-lost"
	/** Fences of two processes of the server can be equal. */
	| "repeats-fences";

/** The result of a simulation. */
export interface SimulationResult {
	readonly violations: readonly string[];
	/** How many holds there were, and how many of them were lost. */
	readonly holds: number;
	readonly lost: number;
}

const ttlMs = 10_000;
const lease = "crown";

/** A process of the server. */
interface ServerProcess {
	readonly local: LocalLeases;
	readonly timed: LocalTimedLeases;
	readonly transport: Transport;
}

/**
 * Simulates processes that compete for one lease of a server, with clocks that are up to a
 * tenth too fast or too slow, over a network that delays, loses and repeats requests. They hold it for a while, write with
 * its fence, and release it; the server crashes and starts again. Checked are:
 *
 * 1. At no time are two holds live.
 * 2. No write of a hold is stored after one of a later hold.
 * 3. When the faults are over, a lease is granted again.
 */
export async function simulate(seed: number, fault?: PlantedFault): Promise<SimulationResult> {
	const runtime = seededRuntime({ seed, maxSteps: 400_000 });
	const random = seededRandom(seed * 31 + 7);
	return new Simulation(runtime, random, fault).run();
}

class Simulation {
	readonly #runtime: SeededRuntime;
	readonly #random: Random;
	readonly #fault: PlantedFault | undefined;
	readonly #violations: string[] = [];
	#server: ServerProcess | undefined;
	#starts = 0;
	#isCalm = false;
	/** The hold that is live, by its number. */
	#live: number | undefined;
	#holds = 0;
	#lost = 0;
	/** The number of the latest hold of which a write was stored. */
	#lastWriter = 0;

	constructor(runtime: SeededRuntime, random: Random, fault: PlantedFault | undefined) {
		this.#runtime = runtime;
		this.#random = random;
		this.#fault = fault;
	}

	async run(): Promise<SimulationResult> {
		const { scheduler } = this.#runtime;
		this.#boot();
		const end = new AbortController();
		const work = Promise.all([
			...Array.from({ length: 3 }, () => this.#compete(end.signal)),
			this.#crashServer(end.signal),
		]);
		await scheduler.advance(300_000);
		end.abort(new Error("calm"));
		this.#isCalm = true;
		await scheduler.run(work);
		this.#server ?? this.#boot();
		const granted = this.#client().acquire(lease, new AbortController().signal);
		let isGranted = false;
		void granted.then(() => {
			isGranted = true;
		});
		await scheduler.advance(3 * ttlMs);
		if (!isGranted) {
			this.#violations.push("no lease is granted, though all faults are over");
		}
		this.#server?.timed.close();
		return { violations: this.#violations, holds: this.#holds, lost: this.#lost };
	}

	#boot(): void {
		const { clock } = this.#runtime;
		this.#starts += 1;
		const local = new LocalLeases(this.#fault === "repeats-fences" ? "" : `p${this.#starts}`);
		const timed = new LocalTimedLeases({
			leases: local,
			clock: this.#fault === "grants-at-start" ? lateClock(clock) : clock,
			ttlMs: this.#fault === "expires-early" ? ttlMs / 2 : ttlMs,
		});
		const service = createLeaseService({
			leases: this.#fault === undefined ? timed : withFault(timed, this.#fault),
			suspended: () => undefined,
			stopping: new AbortController().signal,
			accessOf: async () => ({ require: () => {}, mayHold: () => true }),
			clock,
		});
		const transport = createInProcessTransport(
			(router) => router.service(LeaseService, service),
			this.#runtime,
		);
		this.#server = { local, timed, transport };
	}

	async #crashServer(end: AbortSignal): Promise<void> {
		while (!end.aborted) {
			await this.#pause(120_000);
			if (end.aborted) {
				return;
			}
			this.#server?.timed.close();
			this.#server = undefined;
			await this.#pause(8_000);
			this.#boot();
		}
	}

	/** Holds the lease again and again, as one process after another. */
	async #compete(end: AbortSignal): Promise<void> {
		while (!end.aborted) {
			await this.#pause(5_000);
			const impatience = new AbortController();
			void this.#pause(60_000).then(() => impatience.abort(new Error("waited too long")));
			const hold = await this.#client()
				.acquire(lease, impatience.signal)
				.catch(() => undefined);
			if (hold !== undefined) {
				await this.#hold(hold);
			}
		}
	}

	async #hold(hold: LeaseHold): Promise<void> {
		if (hold.signal.aborted) {
			return;
		}
		this.#holds += 1;
		const number = this.#holds;
		if (this.#live !== undefined) {
			this.#violations.push(`hold ${number} is live beside hold ${this.#live}`);
		}
		this.#live = number;
		let isReleased = false;
		hold.signal.addEventListener("abort", () => {
			this.#live = this.#live === number ? undefined : this.#live;
			this.#lost += isReleased ? 0 : 1;
		});
		for (let writes = Math.floor(this.#random.next() * 6); writes > 0; writes--) {
			void this.#write(number, hold.fence);
			await this.#pause(10_000);
		}
		isReleased = true;
		await hold.release();
	}

	/** Writes with a fence, which may reach the storage late, also in another process of the server. */
	async #write(number: number, fence: Fence): Promise<void> {
		await this.#delay();
		if (this.#server?.local.isCurrent(fence)) {
			if (number < this.#lastWriter) {
				this.#violations.push(`a write of hold ${number} follows one of hold ${this.#lastWriter}`);
			}
			this.#lastWriter = Math.max(number, this.#lastWriter);
		}
	}

	#client(): RemoteLeases {
		const client = createClient(LeaseService, this.#network());
		const { clock, random } = this.#runtime;
		const rate = 0.9 + this.#random.next() * 0.2;
		const runtime = { clock: new SkewedClock(clock, { rate }), random };
		return new RemoteLeases({ client, runtime, logger: silentLogger });
	}

	/** A transport over the simulated network to the process that runs when a request arrives. */
	#network(): Transport {
		const deliver: Transport["unary"] = async (method, signal, _timeoutMs, header, input) => {
			await this.#delay();
			const server = this.#server;
			if (server === undefined || this.#happens(0.05)) {
				throw new ConnectError("no server responds", Code.Unavailable);
			}
			const response = await server.transport.unary(method, signal, undefined, header, input);
			await this.#delay();
			if (this.#server !== server || this.#happens(0.05)) {
				throw new ConnectError("no server responds", Code.Unavailable);
			}
			return response;
		};
		return {
			unary: (method, signal, timeoutMs, header, input) => {
				if (this.#happens(0.1)) {
					// It arrives once more, later, and nobody waits for its response.
					void this.#pause(30_000).then(() =>
						deliver(method, undefined, undefined, header, input).catch(() => {}),
					);
				}
				const late = new AbortController();
				const timer = this.#runtime.clock.setTimer(timeoutMs ?? 60_000, () =>
					late.abort(new ConnectError("the response is late", Code.DeadlineExceeded)),
				);
				const ends = signal === undefined ? late.signal : AbortSignal.any([signal, late.signal]);
				const response = deliver(method, signal, undefined, header, input);
				response.catch(() => {});
				const ended = Promise.withResolvers<never>();
				const onEnd = () => ended.reject(ends.reason);
				ends.addEventListener("abort", onEnd, { once: true });
				return Promise.race([response, ended.promise]).finally(() => {
					timer.cancel();
					ends.removeEventListener("abort", onEnd);
				});
			},
			stream: () => Promise.reject(new ConnectError("not simulated", Code.Unimplemented)),
		};
	}

	#happens(probability: number): boolean {
		return !this.#isCalm && this.#random.next() < probability;
	}

	/** Mostly a few milliseconds, at times many seconds. */
	#delay(): Promise<void> {
		const isSlow = this.#happens(0.15);
		return this.#pause(isSlow ? 20_000 : 20);
	}

	#pause(maxMs: number): Promise<void> {
		return sleep(this.#runtime.clock, this.#random.next() * maxMs);
	}
}

/** A clock for which its first reading is long ago. */
function lateClock(clock: Clock): Clock {
	let isFirst = true;
	return {
		...{ now: () => clock.now(), setTimer: (ms, callback) => clock.setTimer(ms, callback) },
		monotonic() {
			const readMs = clock.monotonic() - (isFirst ? ttlMs : 0);
			isFirst = false;
			return readMs;
		},
	};
}

function withFault(timed: TimedLeases, fault: PlantedFault): TimedLeases {
	const granted = new Map<string, Fence>();
	return {
		ttlMs,
		async grant(name, holder, patience) {
			const fence = await timed.grant(name, holder, patience);
			if (fence !== undefined) {
				granted.set(holder, fence);
			}
			return fence;
		},
		async renew(name, holder) {
			const fence = await timed.renew(name, holder);
			return fence ?? (fault === "renews-lost" ? granted.get(holder) : undefined);
		},
		release: (name, holder) => timed.release(name, holder),
		held: (prefix, signal) => timed.held(prefix, signal),
	};
}

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { LeaseHold } from "./lease.ts";
import { LocalLeases } from "./local-leases.ts";
import { SuspendableLeases } from "./suspendable-leases.ts";

const never = new AbortController().signal;
const settle = () => new Promise((resolve) => setImmediate(resolve));

describe("SuspendableLeases", () => {
	it("release held leases at once, so that another server gets them, and acquire them again", async () => {
		const etcd = new LocalLeases();
		const [one, other] = [new SuspendableLeases(etcd), new SuspendableLeases(etcd)];
		const hold = await one.acquire("controllers", never);
		const next = other.acquire("controllers", never);
		one.suspend(new Error("another schema is active"));
		expect(hold.signal.aborted).toBe(true);
		expect(hold.signal.reason).toEqual(new Error("another schema is active"));
		const taken = await next;
		expect(taken.signal.aborted).toBe(false);

		let again: LeaseHold | undefined;
		void one.acquire("controllers", never).then((held) => {
			again = held;
		});
		await taken.release();
		await settle();
		expect(again).toBeUndefined();
		one.resume();
		await settle();
		expect(again?.signal.aborted).toBe(false);
	});

	it("stop waiting for a lease that another server holds, and wait again", async () => {
		const etcd = new LocalLeases();
		const one = new SuspendableLeases(etcd);
		const held = await etcd.acquire("controllers", never);
		const waiting = one.acquire("controllers", never);
		one.suspend(new Error("away"));
		await settle();
		await held.release();
		await settle();
		const meanwhile = await etcd.acquire("controllers", never);
		one.resume();
		await meanwhile.release();
		expect((await waiting).signal.aborted).toBe(false);
	});

	it("reject with the reason of the caller's signal, suspended or not", async () => {
		const one = new SuspendableLeases(new LocalLeases());
		one.suspend(new Error("away"));
		const stop = new AbortController();
		const waiting = one.acquire("controllers", stop.signal);
		stop.abort(new Error("the server is stopping"));
		await expect(waiting).rejects.toThrow("the server is stopping");
		await expect(one.acquire("controllers", stop.signal)).rejects.toThrow("the server is stopping");
	});

	it("never have a live hold while they are suspended, nor two servers one, in any order of events", async () => {
		const event = fc.record({
			server: fc.nat(2),
			what: fc.constantFrom("suspend", "resume", "release", "revoke", "settle"),
		});
		await fc.assert(
			fc.asyncProperty(fc.array(event, { maxLength: 40 }), async (events) => {
				const etcd = new LocalLeases();
				const stop = new AbortController();
				const servers = [0, 1, 2].map(() => new Holder(new SuspendableLeases(etcd), stop.signal));
				const check = () => {
					const live = servers.filter(({ isLive }) => isLive);
					expect(live.length).toBeLessThanOrEqual(1);
					expect(live.some(({ suspended }) => suspended)).toBe(false);
				};
				for (const { server, what } of events) {
					const holder = servers[server];
					if (what === "settle") {
						await settle();
					} else if (what === "revoke") {
						etcd.revoke("controllers");
					} else {
						holder?.[what]();
					}
					check();
				}
				for (const holder of servers) {
					holder.resume();
				}
				await settle();
				expect(servers.filter(({ isLive }) => isLive)).toHaveLength(1);
				stop.abort(new Error("over"));
			}),
		);
	});
});

/** Holds a lease whenever it can, as the controllers of a server do. */
class Holder {
	readonly #leases: SuspendableLeases;
	#hold: LeaseHold | undefined;
	suspended = false;

	constructor(leases: SuspendableLeases, stop: AbortSignal) {
		this.#leases = leases;
		void this.#run(stop).catch(() => {});
	}

	get isLive(): boolean {
		return this.#hold !== undefined && !this.#hold.signal.aborted;
	}

	suspend(): void {
		this.suspended = true;
		this.#leases.suspend(new Error("suspended"));
	}

	resume(): void {
		this.suspended = false;
		this.#leases.resume();
	}

	release(): void {
		void this.#hold?.release();
	}

	async #run(stop: AbortSignal): Promise<void> {
		while (!stop.aborted) {
			const hold = await this.#leases.acquire("controllers", stop);
			this.#hold = hold;
			if (!hold.signal.aborted) {
				await new Promise((resolve) => hold.signal.addEventListener("abort", resolve));
			}
			await hold.release();
		}
	}
}

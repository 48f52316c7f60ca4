import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createInProcessTransport } from "@plinth/in-process";
import { LeaseService } from "@plinth/proto";
import { decodeFence, LocalLeases, LocalTimedLeases, silentLogger } from "@plinth/runtime";
import { type SeededRuntime, seededRuntime } from "@plinth/runtime/testing";
import { describe, expect, it } from "vitest";
import { createLeaseService } from "./lease-service.ts";
import { RemoteLeases } from "./remote-leases.ts";

/** A service that has run for long, and clients of it. */
async function lab({ limit }: { readonly limit?: number } = {}) {
	const runtime = seededRuntime({ seed: 1 });
	const { clock } = runtime;
	const local = new LocalLeases("p1");
	const leases = new LocalTimedLeases({ leases: local, clock, ...(limit && { limit }) });
	let suspended: string | undefined;
	const [ended, stopping] = [new AbortController(), new AbortController()];
	const service = createLeaseService({
		...{ leases, clock },
		suspended: () => suspended,
		stopping: stopping.signal,
		accessOf: async () => ({
			require(name) {
				if (name.startsWith("secret")) {
					throw new ConnectError(`you may not hold ${name}`, Code.PermissionDenied);
				}
			},
			mayHold: (name) => !name.startsWith("secret"),
			ended: ended.signal,
		}),
	});
	const transport = createInProcessTransport(
		(router) => router.service(LeaseService, service),
		runtime,
	);
	const client = createClient(LeaseService, transport);
	const remote = new RemoteLeases({ client, runtime, logger: silentLogger });
	await runtime.scheduler.advance(leases.ttlMs);
	return {
		...{ runtime, local, leases, client, remote, ended, stopping },
		suspend(why: string | undefined) {
			suspended = why;
		},
	};
}

/** The error with which a call fails. */
async function failureOf({ scheduler }: SeededRuntime, call: Promise<unknown>): Promise<string> {
	const outcome = await scheduler.run(call.catch((failure: unknown) => failure));
	return outcome instanceof ConnectError ? outcome.message : "no failure";
}

describe("LeaseService", () => {
	it.each([
		[{}, "name is required"],
		[{ name: "a b", holder: "x" }, 'name must consist of letters, digits and - . _ : / , got " "'],
		[{ name: "a\u0000", holder: "x" }, "name must consist"],
		[{ name: "a".repeat(201), holder: "x" }, "name must be at most 200 characters long, got 201"],
		[{ name: "a" }, "holder is required"],
		[{ name: "a", holder: "../b" }, "holder must consist of at most 64 letters and digits"],
		[{ name: "a", holder: "x", wait: { seconds: 61n } }, "wait must be from 0 to 60 seconds"],
		[{ name: "a", holder: "x", wait: { seconds: -1n } }, "wait must be from 0 to 60 seconds"],
	])("refuses the request %o", async (request, message) => {
		const { runtime, client } = await lab();
		expect(await failureOf(runtime, client.acquire(request))).toContain(
			`[invalid_argument] ${message}`,
		);
	});

	it("requires the right to each lease", async () => {
		const { runtime, client, leases } = await lab();
		const request = { name: "secret-a", holder: "one" };
		await leases.grant("clients/secret-a", "one", AbortSignal.abort());
		for (const call of [client.acquire(request), client.renew(request), client.release(request)]) {
			expect(await failureOf(runtime, call)).toBe("[permission_denied] you may not hold secret-a");
		}
		expect(await leases.renew("clients/secret-a", "one")).toBeDefined();
	});

	it("grants no lease that the servers themselves hold, whatever its name", async () => {
		const { runtime, local, client } = await lab();
		await local.acquire("controllers", new AbortController().signal);
		const { fence } = await runtime.scheduler.run(
			client.acquire({ name: "controllers", holder: "one" }),
		);
		expect(decodeFence(fence)).toEqual({ lease: "clients/controllers", token: "p1.2" });
	});

	it("waits as long as it is asked to", async () => {
		const { runtime, client } = await lab();
		await runtime.scheduler.run(client.acquire({ name: "a", holder: "one" }));
		const beganMs = runtime.clock.monotonic();
		const wait = { seconds: 3n };
		const { fence } = await runtime.scheduler.run(
			client.acquire({ name: "a", holder: "two", wait }),
		);
		expect({ fence, waitedMs: runtime.clock.monotonic() - beganMs }).toEqual({
			fence: "",
			waitedMs: 3_000,
		});
	});

	it("holds up no server that stops", async () => {
		const { runtime, client, stopping } = await lab();
		await runtime.scheduler.run(client.acquire({ name: "a", holder: "one" }));
		const waiting = client.acquire({ name: "a", holder: "two", wait: { seconds: 30n } });
		await runtime.scheduler.advance(1_000);
		stopping.abort();
		const beganMs = runtime.clock.monotonic();
		expect((await runtime.scheduler.run(waiting)).fence).toBe("");
		expect(runtime.clock.monotonic()).toBe(beganMs);
	});

	it("says that it grants none while the server is suspended, and when there are too many", async () => {
		const { runtime, client, suspend } = await lab({ limit: 1 });
		suspend("it was superseded");
		const request = { name: "a", holder: "one" };
		expect(await failureOf(runtime, client.acquire(request))).toBe(
			"[unavailable] this server grants no leases: it was superseded",
		);
		suspend(undefined);
		await runtime.scheduler.run(client.acquire(request));
		expect(await failureOf(runtime, client.acquire({ name: "b", holder: "one" }))).toContain(
			"[resource_exhausted] 1 leases are held, which is the limit",
		);
	});

	it("says of a lease that was lost that it is not held", async () => {
		const { runtime, client, leases } = await lab();
		await runtime.scheduler.run(client.acquire({ name: "a", holder: "one" }));
		await runtime.scheduler.advance(leases.ttlMs);
		expect(await failureOf(runtime, client.renew({ name: "a", holder: "one" }))).toBe(
			"[not_found] the lease a is not held by one: it has expired, or was released",
		);
	});
});

describe("RemoteLeases", () => {
	const forever = new AbortController().signal;

	it("hold a lease until it is released", async () => {
		const { runtime, remote, local } = await lab();
		const { scheduler } = runtime;
		const hold = await scheduler.run(remote.acquire("a", forever));
		await scheduler.advance(60_000);
		expect(hold.signal.aborted).toBe(false);
		expect(local.isCurrent(hold.fence)).toBe(true);
		const second = remote.acquire("a", forever);
		await scheduler.run(hold.release());
		const next = await scheduler.run(second);
		expect(local.isCurrent(hold.fence)).toBe(false);
		expect(local.isCurrent(next.fence)).toBe(true);
	});

	it("notice that the server has taken a lease away", async () => {
		const { runtime, remote, local } = await lab();
		const hold = await runtime.scheduler.run(remote.acquire("a", forever));
		local.revoke("clients/a");
		await runtime.scheduler.advance(3_000);
		expect(hold.signal.reason).toEqual(new Error("lease clients/a has expired"));
	});

	it("leave nothing behind when the caller gives up", async () => {
		const { runtime, remote } = await lab();
		const { scheduler } = runtime;
		const first = await scheduler.run(remote.acquire("a", forever));
		const impatient = new AbortController();
		const second = remote.acquire("a", impatient.signal).catch((failure: unknown) => failure);
		await scheduler.advance(1_000);
		impatient.abort(new Error("too long"));
		expect(await scheduler.run(second)).toEqual(new Error("too long"));
		await scheduler.run(first.release());
		await scheduler.run(remote.acquire("a", forever));
	});

	it("fail where they may not hold the lease", async () => {
		const { runtime, remote } = await lab();
		expect(await failureOf(runtime, remote.acquire("secret", forever))).toContain(
			"you may not hold secret",
		);
	});

	it("tell which leases are held, without those that one may not see", async () => {
		const { runtime, remote, leases, ended } = await lab();
		const { scheduler } = runtime;
		await leases.grant("clients/secret", "one", AbortSignal.abort());
		const over = new AbortController();
		const changes = remote.held("s", over.signal)[Symbol.asyncIterator]();
		const next = async () => [...(await scheduler.run(changes.next())).value];
		expect(await next()).toEqual([]);
		const hold = await scheduler.run(remote.acquire("shard-1", forever));
		expect(await next()).toEqual(["shard-1"]);
		await scheduler.run(hold.release());
		expect(await next()).toEqual([]);
		const last = changes.next();
		ended.abort();
		expect(await failureOf(runtime, last)).toContain("the rights of the token have changed");
	});
});

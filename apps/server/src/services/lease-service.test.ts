import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { RemoteLeases } from "@plinth/leases";
import { LeaseService, ResourceService } from "@plinth/proto";
import { PolicyAuthorizer } from "@plinth/resource-service";
import { createPlinthTransport } from "@plinth/rpc-client";
import { encodeFence, type Fence, silentLogger, systemRuntime } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import { EtcdProcess } from "@plinth/storage-etcd/testing";
import { describeWith, temporaryFolder } from "@plinth/test-support";
import { describe, expect, it, onTestFinished } from "vitest";
import { artist, musicModule } from "../../testdata/music.ts";
import type { Server } from "../server.ts";
import { startServer, whileTimePasses } from "../started-server.fixture.ts";

const forever = new AbortController().signal;

function clientsOf({ address }: Pick<Server, "address">, token = "") {
	const headers = token === "" ? {} : { authorization: `Bearer ${token}` };
	const transport = createPlinthTransport({ baseUrl: address, headers });
	onTestFinished(() => transport.close());
	const leases = createClient(LeaseService, transport);
	const resources = createClient(ResourceService, transport);
	const remote = new RemoteLeases({ client: leases, runtime: systemRuntime, logger: silentLogger });
	return {
		...{ leases, remote },
		/** Writes with a fence, and returns the code with which that fails. */
		async write(name: string, fence: Fence): Promise<string> {
			const options = { headers: { "x-plinth-fence": encodeFence(fence) } };
			const failure = await resources.write({ resource: artist(name) }, options).then(
				() => undefined,
				(error: unknown) => ConnectError.from(error),
			);
			return failure === undefined ? "stored" : (Code[failure.code] ?? "");
		},
	};
}

describe("LeaseService", () => {
	it("grants leases over the network, whose fences protect writes", async () => {
		const server = await startServer({ modules: [musicModule()] });
		const [one, other] = [clientsOf(server), clientsOf(server)];
		const hold = await one.remote.acquire("tour", forever);
		expect(await one.write("miles", hold.fence)).toBe("stored");
		const next = other.remote.acquire("tour", forever);
		await hold.release();
		const { fence } = await next;
		expect(await one.write("john", hold.fence)).toBe("Aborted");
		expect(await other.write("john", fence)).toBe("stored");
	});

	it("is for those that have the right, lease by lease", async () => {
		const authorizer = new PolicyAuthorizer();
		const type = "internal.v1.Lease";
		const rules = [{ operations: ["operator:lease"], type, namePrefix: "tour" }];
		authorizer.grant("ann", { subject: "ann", rules });
		authorizer.grant("bob", { subject: "bob", rules: [{ operations: ["operator:read"] }] });
		const server = await startServer({ authorizer });
		const [ann, bob] = [clientsOf(server, "ann"), clientsOf(server, "bob")];
		await ann.remote.acquire("tour-1", forever);
		const denied = [ann.remote.acquire("x", forever), bob.remote.acquire("tour", forever)];
		for (const outcome of await Promise.allSettled(denied)) {
			expect(outcome).toMatchObject({ reason: { code: Code.PermissionDenied } });
		}
		const seen = bob.remote.held("tour", forever)[Symbol.asyncIterator]();
		expect((await seen.next()).value).toEqual(new Set());
		await expect(clientsOf(server).remote.acquire("tour", forever)).rejects.toMatchObject({
			code: Code.Unauthenticated,
		});
	});

	it("grants nothing after a restart until earlier leases have expired, and refuses their fences", async () => {
		const directory = await temporaryFolder();
		const clock = new FakeClock();
		const options = {
			modules: [musicModule()],
			storage: { kind: "sqlite", directory },
			runtime: { ...systemRuntime, clock },
		} as const;
		const request = { name: "tour", holder: "one" };
		const first = await startServer(options);
		clock.advance(10_000);
		const before = clientsOf(first);
		const { fence } = await before.leases.acquire(request);
		expect(fence).not.toBe("");
		await whileTimePasses(clock, first.stop());

		const second = clientsOf(await startServer(options));
		await expect(second.leases.renew(request)).rejects.toMatchObject({ code: Code.NotFound });
		const other = { name: "tour", holder: "two" };
		expect((await second.leases.acquire(other)).fence).toBe("");
		clock.advance(10_000);
		const { fence: next } = await second.leases.acquire(other);
		expect(next).not.toBe("");
		expect(next).not.toBe(fence);
	});
});

describeWith("etcd")("LeaseService, on two servers of one etcd", () => {
	it("renews a lease at any server, also when the one that has granted it is gone", async () => {
		const etcd = await EtcdProcess.start();
		onTestFinished(() => etcd.dispose());
		const storage = { kind: "etcd", endpoints: [etcd.url] } as const;
		const modules = [musicModule()];
		const one = await startServer({ storage, modules });
		const other = await startServer({ storage, modules });
		const request = { name: "tour", holder: "one" };
		const { fence } = await clientsOf(one).leases.acquire(request);
		await one.stop();
		const { leases, remote, write } = clientsOf(other);
		expect((await leases.renew(request)).fence).toBe(fence);
		await leases.release(request);
		const hold = await remote.acquire("tour", forever);
		expect(await write("miles", hold.fence)).toBe("stored");
	});
});

import type { StorageBackend } from "@plinth/storage";
import { describe, expect, it, vi } from "vitest";
import { routeTo } from "../protocol/holder-query.ts";
import { ResourceShadow, readRecord, recordOf } from "../shadow/shadow-records.ts";
import { RegistryLab } from "./registry-lab.fixture.ts";
import { RunningServers } from "./running-servers.ts";

const uid = "01ALPHA";

function named(version: string, ...addresses: string[]) {
	return { addresses, version };
}

describe("the running servers of a deployment", () => {
	it("are those named by the newest version of its storage", () => {
		const servers = new RunningServers();
		expect(servers.of(uid)).toEqual(named(""));
		expect(servers.learn(uid, named("9", "b", "a"))).toBe(true);
		expect(servers.learn(uid, named("10", "a", "b"))).toBe(false);
		expect(servers.learn(uid, named("9", "c"))).toBe(false);
		expect(servers.of(uid)).toEqual(named("10", "a", "b"));
		expect(servers.learn(uid, named("11"))).toBe(true);
		expect(servers.of(uid)).toEqual(named("11"));
	});

	it("are those named last by servers that name no version", () => {
		const servers = new RunningServers();
		servers.learn(uid, named("", "a"));
		servers.learn(uid, named("9", "b"));
		expect(servers.learn(uid, named("", "c"))).toBe(true);
		expect(servers.of(uid)).toEqual(named("9", "c"));
	});

	it("are taken from the storage unless they are older", () => {
		const servers = new RunningServers();
		expect(servers.takeStored(uid, named("", "a"))).toBe(false);
		expect(servers.of(uid)).toEqual(named("", "a"));
		expect(servers.takeStored(uid, named(""))).toBe(true);
		servers.learn(uid, named("9", "b"));
		expect(servers.isNewer(uid, named("9", "c"))).toBe(false);
		expect(servers.isNewer(uid, named("10", "c"))).toBe(true);
		expect(servers.takeStored(uid, named("9", "c"))).toBe(false);
		expect(servers.of(uid)).toEqual(named("9", "c"));
		expect(servers.takeStored(uid, named("8", "a"))).toBe(true);
		expect(servers.takeStored(uid, named("", "c"))).toBe(false);
		expect(servers.of(uid)).toEqual(named("9", "c"));
	});

	it("are forgotten with their deployment", () => {
		const servers = new RunningServers();
		servers.learn(uid, named("9", "b"));
		servers.forget(uid);
		expect(servers.learn(uid, named("1", "a"))).toBe(true);
	});
});

/** Where the servers of other deployments run, as the storage of a deployment has it. */
async function storedAddresses(backend: StorageBackend): Promise<readonly string[]> {
	const { resources } = await backend.list({
		type: ResourceShadow.type,
		tenancy: { partition: "", namespace: "" },
		namePrefix: "registry-",
	});
	return resources.flatMap((resource) => {
		const { record } = recordOf(resource);
		return record.case === "registryEntry" ? record.value.endpoints : [];
	});
}

async function whenStored(backend: StorageBackend, record: string): Promise<void> {
	await vi.waitFor(async () => expect(await readRecord(backend, record)).toBeDefined(), {
		timeout: 300_000,
	});
}

it("an idle server knows where another deployment has started a server, without a meta deployment", async () => {
	const lab = new RegistryLab();
	const meta = await lab.start("meta", "r1");
	const alpha = await lab.start("alpha", "r1", { address: "http://alpha-1" });
	const { backend, manager } = await lab.start("beta", "r1", { address: "http://beta-1" });
	// Its controllers have not started yet: nobody tells it anything but the other server.
	const address = "http://beta-2";
	const idle = await lab.start("beta", "r1", { address, backend, controls: false });
	const { uid } = alpha.registry.self;
	await vi.waitFor(() => expect(manager.subscribed).toContain(uid), { timeout: 300_000 });
	await whenStored(alpha.backend, "registry");
	// What follows is told by an event: the watch is open.
	await whenStored(alpha.backend, "followers");
	await meta.stop();

	await lab.start("alpha", "r1", { address: "http://alpha-2", backend: alpha.backend });
	await vi.waitFor(async () => expect(await storedAddresses(backend)).toContain("http://alpha-2"), {
		timeout: 300_000,
	});
	await alpha.stop();
	const route = routeTo(idle.constraints.context, uid);
	await vi.waitFor(() => idle.registry.client(uid).reportReleases({ route }), { timeout: 300_000 });
});

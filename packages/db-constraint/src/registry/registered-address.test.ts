import { systemRuntime } from "@plinth/runtime";
import { createMemoryBackend } from "@plinth/storage";
import { expect, it, vi } from "vitest";
import { RegistryLab } from "./registry-lab.fixture.ts";

const patiently = { timeout: 60_000, interval: 5 };

/** Servers of one deployment, with a meta deployment. Each has its name as address. */
async function startServers<Name extends string>(...names: readonly Name[]) {
	const lab = new RegistryLab();
	const meta = await lab.start("meta", "r1");
	const backend = createMemoryBackend({ runtime: systemRuntime });
	const start = (name: Name) => lab.start("beta", "r1", { address: `http://${name}`, backend });
	const servers = new Map<Name, Awaited<ReturnType<typeof start>>>();
	for (const name of names) {
		servers.set(name, await start(name));
	}
	const serverOf = (name: Name) => {
		const server = servers.get(name);
		if (server === undefined) {
			throw new Error(`${name} was not started`);
		}
		return server;
	};
	/** Waits until a server knows that exactly these run. */
	const knowsThat = async (name: Name, ...running: readonly Name[]) => {
		const { index } = serverOf(name).constraints.context;
		const known = () => [...index.endpoints.values()].map(({ announced }) => announced).sort();
		const expected = running.map((each) => `http://${each}`).sort();
		await vi.waitFor(() => expect(known()).toEqual(expected), patiently);
	};
	/** Waits until a server knows that the address of this one is the registered one. */
	const knowsRegistered = (name: Name, registered: Name) =>
		vi.waitFor(
			() => expect(serverOf(name).registry.registeredAddress).toBe(`http://${registered}`),
			patiently,
		);
	const register = (name: Name) => lab.change(meta, "beta-r1", { address: `http://${name}` });
	return { lab, serverOf, knowsThat, knowsRegistered, register };
}

it("a server that can't register its address tries again as long as none runs at the registered one", async () => {
	const { lab, serverOf, knowsThat, knowsRegistered, register } = await startServers(
		"one",
		"two",
		"three",
	);
	await knowsThat("two", "one", "two", "three");
	await knowsRegistered("two", "one");
	const held = Promise.withResolvers<void>();
	lab.heldReads = held.promise;
	await serverOf("one").stop();
	await knowsThat("two", "two", "three");
	// `two` waits for its first read. `three` registers its address, and stops, which waits for a read of its own.
	await register("three");
	await knowsRegistered("two", "three");
	const stopped = serverOf("three").stop();
	await knowsThat("two", "two");
	lab.heldReads = undefined;
	held.reject(new Error("the request was lost"));
	await stopped;
	await knowsRegistered("two", "two");
});

it("a server whose address is replaced before the response to its own write registers it again", async () => {
	const { lab, serverOf, knowsThat, knowsRegistered, register } = await startServers("one", "two");
	await knowsThat("two", "one", "two");
	await knowsRegistered("two", "one");
	const held = Promise.withResolvers<void>();
	lab.heldWrites = held.promise;
	await serverOf("one").stop();
	await knowsRegistered("two", "two");
	// At this address no server runs any longer.
	await register("one");
	await knowsRegistered("two", "one");
	await knowsThat("two", "two");
	lab.heldWrites = undefined;
	held.resolve();
	await knowsRegistered("two", "two");
});

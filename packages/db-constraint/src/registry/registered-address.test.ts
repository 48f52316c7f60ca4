import { silentLogger, systemRuntime } from "@plinth/runtime";
import { createMemoryBackend, decorateBackend } from "@plinth/storage";
import { expect, it, vi } from "vitest";
import { RegistryLab } from "./registry-lab.fixture.ts";

const patiently = { timeout: 60_000, interval: 5 };

/** A storage whose watches can be broken. */
function breakableStorage() {
	const stored = createMemoryBackend({ runtime: systemRuntime });
	const broken = () => {
		const next = Promise.withResolvers<never>();
		next.promise.catch(() => {});
		return next;
	};
	let current = broken();
	async function* watchList(...args: Parameters<typeof stored.watchList>) {
		const events = stored.watchList(...args)[Symbol.asyncIterator]();
		const { promise } = current;
		for (;;) {
			const next = await Promise.race([events.next(), promise]);
			if (next.done) {
				return;
			}
			yield next.value;
		}
	}
	const breakWatches = () => {
		const { reject } = current;
		current = broken();
		reject(new Error("the watch broke"));
	};
	return { backend: decorateBackend(stored, { watchList }), breakWatches };
}

it("a server that can't register its address tries for as long as none runs at the registered one", {
	timeout: 120_000,
}, async () => {
	const lab = new RegistryLab();
	const meta = await lab.start("meta", "r1");
	const { backend, breakWatches } = breakableStorage();
	const startServer = (name: string, logger = silentLogger) =>
		lab.start("beta", "r1", { address: `http://${name}`, backend, logger });
	const failed = vi.fn<() => void>();
	const warn = (_: unknown, text?: string) => {
		if (text?.includes("register the address")) {
			failed();
		}
	};
	const one = await startServer("one");
	const two = await startServer("two", { ...silentLogger, warn });
	const three = await startServer("three");
	const { index } = two.constraints.context;
	const running = () => [...index.endpoints.values()].map(({ announced }) => announced).sort();
	await vi.waitFor(() => expect(running()).toHaveLength(3), patiently);
	expect(two.registry.registeredAddress).toBe("http://one");
	lab.failingReads = Number.POSITIVE_INFINITY;
	await one.stop();
	await vi.waitFor(() => expect(failed).toHaveBeenCalled(), patiently);
	// A new snapshot of the storage replaces what the index has.
	const onEndpoints = vi.fn<() => void>();
	index.onEndpoints(onEndpoints);
	breakWatches();
	await vi.waitFor(() => expect(onEndpoints).toHaveBeenCalled(), patiently);
	// `three` registers its address, and stops, before `two` tries again.
	await lab.change(meta, "beta-r1", { address: "http://three" });
	const { registry } = two;
	await vi.waitFor(() => expect(registry.registeredAddress).toBe("http://three"), patiently);
	await three.stop();
	await vi.waitFor(() => expect(running()).toEqual(["http://two"]), patiently);
	lab.failingReads = 0;
	await vi.waitFor(() => expect(registry.registeredAddress).toBe("http://two"), patiently);
});

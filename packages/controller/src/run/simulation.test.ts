import type { CallOptions } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import type { ResourceClient } from "../client/resource-client.ts";
import { type SimulationOptions, simulate } from "./simulation.fixture.ts";

const seeds = 100;

/** What the first of 200 seeds that finds something says. */
async function firstFinding(options: SimulationOptions): Promise<string> {
	for (let seed = 1; seed <= 200; seed++) {
		const { violations } = await simulate(seed, options);
		if (violations[0] !== undefined) {
			return violations[0];
		}
	}
	return "";
}

/** A client whose priming snapshots are empty, so that all there is comes as live events. */
function withoutPriming(client: ResourceClient): ResourceClient {
	const refused = new Set<string>();
	return {
		...client,
		async *watchList(request, options) {
			const kind = request.type?.kind ?? "";
			const events = client.watchList(request, options);
			if (request.afterVersion) {
				try {
					yield* events;
				} catch (error) {
					refused.add(kind);
					throw error;
				}
			} else if (refused.delete(kind)) {
				yield* events;
			} else {
				for await (const event of events) {
					if (event.event.case === "endOfSnapshot") {
						yield { ...event, version: "0" };
					}
				}
			}
		},
	};
}

/** A client whose responses lack the version of the write, so that there is nothing to wait for. */
function withoutVersions(client: ResourceClient): ResourceClient {
	return {
		...client,
		write: async (request, options) => {
			const { resource, ...rest } = await client.write(request, options);
			return { ...rest, ...(resource && { resource: { ...resource, version: "" } }) };
		},
		delete: async (request, options) => ({
			...(await client.delete(request, options)),
			version: "",
		}),
	};
}

/** A client whose writes carry no fence. */
function withoutFence(client: ResourceClient): ResourceClient {
	const unfenced = (options?: CallOptions) => ({ ...options, headers: {} });
	return {
		...client,
		write: (request, options) => client.write(request, unfenced(options)),
		delete: (request, options) => client.delete(request, unfenced(options)),
	};
}

/** A client that says of each type that nothing has changed, so that there is nothing to catch up on. */
function withoutCatchingUp(client: ResourceClient): ResourceClient {
	return {
		...client,
		list: async (request, options) => ({
			...(await client.list(request, options)),
			version: "0",
			typeVersion: "0",
		}),
	};
}

/** A client of an earlier server, which does not say the version of the type. */
function withoutTypeVersion(client: ResourceClient): ResourceClient {
	return {
		...client,
		list: async (request, options) => ({
			...(await client.list(request, options)),
			typeVersion: "",
		}),
	};
}

/** A client whose watches lack the copies that change while they are followed. */
function withoutLiveCopies(client: ResourceClient): ResourceClient {
	return {
		...client,
		async *watchList(request, options) {
			for await (const each of client.watchList(request, options)) {
				const { event } = each;
				const isLive = Boolean(request.afterVersion);
				if (!(isLive && event.case === "upsert" && event.value.resource?.id?.region)) {
					yield each;
				}
			}
		},
	};
}

/** A client whose watches have no copies, whatever is asked of them. */
function withoutCopies(client: ResourceClient): ResourceClient {
	return {
		...client,
		watchList: (request, options) => client.watchList({ ...request, region: "" }, options),
	};
}

describe("a controller under a seeded scheduler", () => {
	it("converges to the state that its inputs determine, and never acts on a cache older than its own writes", async () => {
		let waits = 0;
		let restarts = 0;
		for (let seed = 1; seed <= seeds; seed++) {
			const result = await simulate(seed);
			expect({ seed, violations: result.violations }).toEqual({ seed, violations: [] });
			waits += result.waits;
			restarts += result.restarts;
		}
		expect(waits).toBeGreaterThan(0);
		expect(restarts).toBeGreaterThan(0);
	});

	it("would be caught acting on its past", async () => {
		expect(await firstFinding({ writing: withoutVersions })).toMatch(/^label . went from/);
	});

	it("would be caught acting on a cache that was not primed", async () => {
		expect(await firstFinding({ watching: withoutPriming })).toMatch(/^label . went from/);
	});

	it("would be caught without copies of other regions, or their changes", async () => {
		expect(await firstFinding({ watching: withoutCopies })).toMatch(/^label . is .*, should be/);
		expect(await firstFinding({ watching: withoutLiveCopies })).toMatch(
			/^label . is .*, should be/,
		);
	});

	it("would be caught writing after it has lost its lease", async () => {
		expect(await firstFinding({ writing: withoutFence })).toMatch(/^label . went from/);
	});
});

describe("a sharded controller under a seeded scheduler", () => {
	const placement = "sharded";

	it("keeps the same promises while servers come and go and shards move", async () => {
		let opened = 0;
		for (let seed = 1; seed <= seeds; seed++) {
			const watching = seed % 10 === 0 ? withoutTypeVersion : undefined;
			const result = await simulate(seed, { placement, ...(watching && { watching }) });
			expect({ seed, violations: result.violations }).toEqual({ seed, violations: [] });
			opened += result.opened;
		}
		expect(opened).toBeGreaterThan(2 * seeds);
	});

	it("would be caught acting on its past", async () => {
		const finding = await firstFinding({ placement, writing: withoutVersions });
		expect(finding).toMatch(/^label . went from/);
	});

	it("would be caught working on a shard without what the former holder wrote", async () => {
		const finding = await firstFinding({ placement, watching: withoutCatchingUp });
		expect(finding).toMatch(/^label . went from/);
	});

	it("would be caught writing after it has lost a shard", async () => {
		const finding = await firstFinding({ placement, writing: withoutFence });
		expect(finding).toMatch(/^label . went from/);
	});
});

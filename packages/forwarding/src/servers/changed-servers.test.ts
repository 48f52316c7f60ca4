/**
 * A forwarder whose servers change, in a random order of changes, calls, responses and lost connections: no call goes to a
 * server that was removed or not checked, and no call ends because of a change. Planted faults show that the test finds both.
 */
import { silentLogger } from "@plinth/runtime";
import { FakeClock, seededRandom } from "@plinth/runtime/testing";
import { seeds } from "@plinth/test-support";
import { afterEach, describe, expect, it, vi } from "vitest";
import { createForwarderOn } from "../forwarder.ts";
import { MovingWatch } from "../watches/moving-watch.ts";
import { below } from "../watches/two-servers.fixture.ts";
import { Server } from "./server.ts";
import { ServerSet } from "./server-set.ts";
import { SimulatedCall, SimulatedNetwork } from "./simulated-network.fixture.ts";

const addresses = ["http://a", "http://b", "http://c", "http://d"] as const;

const kinds = ["Read", "Write", "WatchList"] as const;

/** Runs one order of events. @returns what was wrong. */
async function violations(seed: number): Promise<readonly string[]> {
	const random = seededRandom(seed);
	const pick = <T>(from: readonly T[]): T | undefined => from[below(random, from.length)];
	const clock = new FakeClock();
	const network = new SimulatedNetwork();
	const forwarder = createForwarderOn(
		{
			servers: [],
			methodOf: (path) => ({
				isRepeatable: !path.endsWith("Write"),
				isStream: path.endsWith("WatchList"),
				...(path.endsWith("WatchList") && { watch: "WatchList" as const }),
			}),
			observer: {
				...{ callEnded: () => {}, callRetried: () => {}, watchMoved: () => {} },
				serverEjected: () => {},
			},
			logger: silentLogger,
			runtime: { clock, random },
		},
		({ address }) => network.connect(address),
	);
	const change = () => {
		const set = addresses.filter(() => random.next() < 0.5);
		const next = set.length === 0 ? [addresses[below(random, 4)] ?? "http://a"] : set;
		network.current = new Set(next);
		forwarder.setServers(next.map((address) => ({ address })));
	};
	const connect = () => {
		for (const done of network.connecting.splice(0)) {
			done();
		}
	};
	const respond = () => {
		const stream = pick(network.streams);
		if (stream?.call?.kind === "WatchList") {
			stream.sendNext();
		} else {
			stream?.complete();
		}
	};
	const call = () => {
		const name = String(network.calls.size);
		const made = new SimulatedCall(
			pick(kinds) ?? "Read",
			name,
			random.next() < 0.5 ? "" : String(10 + below(random, 10)),
		);
		network.calls.set(name, made);
		forwarder.forward(made);
	};
	/** Everything that was begun comes to its end. */
	const settle = async () => {
		for (let round = 0; round < 60; round += 1) {
			connect();
			await clock.advanceAsync(1_000);
			for (const stream of network.streams) {
				if (stream.call?.kind === "WatchList") {
					stream.sendNext();
				} else {
					stream.complete();
				}
			}
		}
	};
	change();
	for (let step = 0; step < 150; step += 1) {
		const chance = random.next();
		if (chance < 0.1) {
			change();
		} else if (chance < 0.35 && forwarder.isReady) {
			call();
		} else if (chance < 0.65) {
			respond();
		} else if (chance < 0.8) {
			connect();
		} else if (chance < 0.83) {
			pick(network.all)?.lose();
		}
		await clock.advanceAsync(below(random, 100));
	}
	// Watches move when another server is ready: they need no event for it, unless they are within their snapshots.
	for (let round = 0; round < 10; round += 1) {
		connect();
		await clock.advanceAsync(1_000);
	}
	for (const { connections, call } of network.streams) {
		const isPlaced = network.isCurrent(connections) || call?.versions.length === 0;
		if (call?.kind === "WatchList" && !isPlaced) {
			network.violations.push(`a watch has stayed at ${connections.address}, which was removed`);
		}
	}
	await settle();
	for (const made of network.calls.values()) {
		const { kind, outcome, losses, versions } = made;
		if (kind !== "WatchList" && outcome === undefined) {
			network.violations.push(`${kind} has not ended`);
		}
		if (outcome !== undefined && outcome !== "ok" && losses === 0) {
			network.violations.push(`${kind} has failed, although no connection was lost: ${outcome}`);
		}
		for (const [index, version] of versions.slice(1).entries()) {
			if (version !== (versions[index] ?? 0) + 1) {
				network.violations.push(`a watch went from ${versions[index]} to ${version}`);
			}
		}
	}
	const open = network.all.filter(({ isClosed }) => !isClosed).map(({ address }) => address);
	if (open.length !== network.current.size) {
		network.violations.push(`connections to ${open.join(", ")} are open`);
	}
	if (forwarder.status().some(({ isRemoved }) => isRemoved)) {
		network.violations.push("a server without calls is still leaving");
	}
	forwarder.close();
	return network.violations;
}

afterEach(() => {
	vi.restoreAllMocks();
});

/** The runs find a fault. */
async function findsViolations(pattern: RegExp): Promise<void> {
	const all: string[] = [];
	for (const seed of seeds(30)) {
		all.push(...(await violations(seed)));
	}
	expect(all.join("\n")).toMatch(pattern);
}

describe("servers that change", () => {
	it("get no calls after they were removed, and finish those that they have", async () => {
		for (const seed of seeds(60)) {
			expect({ seed, violations: await violations(seed) }).toEqual({ seed, violations: [] });
		}
	});

	it("are found to lose calls if they are closed at once", async () => {
		const { remove } = Server.prototype;
		vi.spyOn(Server.prototype, "remove").mockImplementation(function (this: Server) {
			remove.call(this);
			this.close();
		});
		await findsViolations(/was cut/);
	});

	it("are found to get calls after they were removed, if the connection decides", async () => {
		vi.spyOn(Server.prototype, "isRemoved", "get").mockReturnValue(false);
		await findsViolations(/which was removed/);
	});

	it("are found to keep watches if these do not leave", async () => {
		vi.spyOn(MovingWatch.prototype, "leaveRemovedServer").mockReturnValue();
		await findsViolations(/has stayed/);
	});

	it("are found to get calls before they were checked", async () => {
		const { replace } = ServerSet.prototype;
		vi.spyOn(ServerSet.prototype, "replace").mockImplementation(function (
			this: ServerSet,
			targets,
		) {
			const changes = replace.call(this, targets);
			for (const { health } of changes.added) {
				vi.spyOn(health, "state", "get").mockReturnValue("healthy");
			}
			return changes;
		});
		await findsViolations(/was not checked/);
	});
});

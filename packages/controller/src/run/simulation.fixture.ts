import { Code, ConnectError } from "@connectrpc/connect";
import { ownerIndex } from "@plinth/cache";
import { createResourceServiceCloningClient } from "@plinth/proto";
import { decode, idOf, nameKey } from "@plinth/resource";
import { LocalLeases, type Logger, type Random, silentLogger } from "@plinth/runtime";
import { type FakeClock, SeededScheduler, seededRandom } from "@plinth/runtime/testing";
import type { ResourceClient } from "../client/resource-client.ts";
import { defineController, type Placement } from "../define/controller.ts";
import { watch } from "../define/watch.ts";
import { Album, Artist, copyOf, demo, Label, text } from "../demo-types.fixture.ts";
import { FakeService } from "../fake-service.fixture.ts";
import type { ManagerState } from "../manager/controller-state.ts";
import { type ControllerManager, createControllerManager } from "../manager/manager.ts";
import { mapOwner } from "../mappers/owner.ts";
import { sameNameAs } from "../mappers/same-name.ts";
import { shardCount, shardOf } from "../shards/shard-of.ts";
import type { Gate } from "../stalls.fixture.ts";

/** What a simulation found. */
export interface SimulationResult {
	/** Violations, in words; none is what is promised. */
	readonly violations: readonly string[];
	/** How often requests had to wait for the cache to see what was written for them. */
	readonly waits: number;
	readonly restarts: number;
	/** How often a server began to work on a shard; 0 if the controller is not sharded. */
	readonly opened: number;
}

/** How a simulation differs from the real thing, to show that its checks can see. */
export interface SimulationOptions {
	/** `singleton` by default. */
	readonly placement?: Placement;
	/** Wraps the client that watches, and asks for versions. */
	readonly watching?: (client: ResourceClient) => ResourceClient;
	/** Wraps the client that reconcilers write through. */
	readonly writing?: (client: ResourceClient) => ResourceClient;
}

const names = ["a", "b", "c"] as const;
const albumNames = ["one", "two", "three", "four"] as const;
const watched = ["demo.v1.Artist", "demo.v1.Album", "demo.v1.Label"] as const;
/** Regions that have copies here. */
const regions = ["us", "eu"] as const;
const albumsByOwner = ownerIndex(Album);

/** The content of an artist's label: how often it was written, and from which inputs. */
interface Summary {
	readonly sequence: number;
	readonly content: string;
}

function parse(value: string): Summary {
	const [sequence = "0", content = ""] = value.split("|");
	return { sequence: Number(sequence), content };
}

/** The reconciles that are under way on all servers, by name. */
type Calls = Map<string, Set<AbortSignal>>;

/** Computes the labels. Two may compute the same one at a time only if one of them has been told to end. */
function summaryController(violations: string[], calls: Calls, placement: Placement) {
	return defineController({
		name: "summary",
		manages: Artist,
		placement,
		concurrency: 2,
		indexes: [albumsByOwner],
		watches: [
			watch(Album, { regions: "*", map: mapOwner }),
			watch(Artist, { regions: ["us"], map: sameNameAs(Artist) }),
			watch(Label, { map: sameNameAs(Artist) }),
		],
		async reconcile(context, { id }) {
			const { signal, cache } = context;
			if (id.region || cache.get(Artist, id)?.resource.origin !== undefined) {
				violations.push(`a copy of ${id.name} is reconciled`);
			}
			const others = calls.get(id.name) ?? new Set();
			if ([...others].some((other) => !other.aborted)) {
				violations.push(`${id.name} is reconciled twice at a time`);
			}
			calls.set(id.name, others.add(signal));
			try {
				const artist = context.cache.get(Artist, id);
				const label = idOf(Label, id.name);
				const existing = context.cache.get(Label, label);
				if (artist === undefined) {
					if (existing !== undefined) {
						await context.delete(label);
					}
					return;
				}
				const albums = ["", ...regions].map((region) =>
					cache
						.inRegion(region)
						.list(albumsByOwner, id)
						.map(({ data }) => data.value)
						.sort(),
				);
				const original = cache.get(Artist, { ...id, region: "us" })?.data.value;
				const content = [artist.data.value, ...albums, original].join(":");
				const before = parse(existing?.data.value ?? "");
				if (existing === undefined || before.content !== content) {
					const value = `${before.sequence + 1}|${content}`;
					await context.write(Label, { id: label, data: text(Label, value) });
				}
			} finally {
				others.delete(signal);
			}
		},
	});
}

/**
 * On two servers (three, which come and go, if it is sharded), one controller that computes a label for each artist from the artist and its albums, and counts
 * in it how often it has written it, from what its cache says, which has copies of other regions. Users write and delete; watches
 * stall, break and are refused resumption; calls fail or arrive late; the lease goes from one server to
 * the other with writes still under way, and so do shards; everything in an order that the seed decides.
 */
export async function simulate(
	seed: number,
	options: SimulationOptions = {},
): Promise<SimulationResult> {
	const random = seededRandom(seed);
	const scheduler = new SeededScheduler({ seed });
	const { clock } = scheduler;
	const service = new FakeService({ scheduler });
	const leases = new LocalLeases();
	service.isCurrent = (fence) => leases.isCurrent(fence);
	const violations: string[] = [];
	const { watching = (client) => client, writing = (client) => client } = options;
	const { placement = "singleton" } = options;
	const calls: Calls = new Map();
	let opened = 0;
	const logger: Logger = {
		...silentLogger,
		debug: (_, message) => {
			opened += Number(message === "began to work on shards");
		},
	};
	const servers = new Servers((server) => {
		const manager = createControllerManager({
			client: watching(service.client),
			cloningClient: writing(createResourceServiceCloningClient(service.client)),
			runtime: { clock, random: seededRandom(seed + server), scheduler },
			leases,
			logger,
		});
		manager.register(summaryController(violations, calls, placement));
		return manager;
	});
	const history = new History();
	service.onStored = ({ id, resource }) => {
		if (id.type?.kind === "Label") {
			const value = resource && decode(Label, resource).data.value;
			violations.push(...history.add(id.name, value));
		}
	};
	const isSharded = placement === "sharded";
	const most = isSharded ? 3 : 2;
	for (let server = 0; server < most; server++) {
		servers.start();
	}
	const user = new User(service, leases, random);

	for (let step = 0; step < (isSharded ? 120 : 60); step++) {
		user.act();
		if (isSharded) {
			moveShards({ clock, servers, user, random, most });
		}
		await scheduler.runSome(Math.floor(random.next() * 30));
		if (random.next() < 0.3) {
			clock.advance(random.next() * 2_000);
		}
	}
	user.openGates();
	for (let quiet = 0, round = 0; quiet < 3; round++) {
		if (round > 1_000) {
			violations.push("the controller did not become idle");
			break;
		}
		const hasWork = await scheduler.runSome(1_000);
		await clock.advanceAsync(5_000);
		const isAtRest = isSharded
			? servers.states.every(rests) && openShards(servers.states) === shardCount
			: servers.states.some(rests);
		quiet = !hasWork && isAtRest ? quiet + 1 : 0;
	}
	violations.push(...differences(service));
	const states = servers.states.flatMap(({ controllers }) => controllers);
	let ended = false;
	void servers.stop().then(() => {
		ended = true;
	});
	for (let round = 0; round < 100 && !ended; round++) {
		await scheduler.runSome(1_000);
		await clock.advanceAsync(1_000);
	}
	if (!ended) {
		violations.push("the managers did not end");
	}
	return {
		violations,
		waits: sum(states.map((state) => state.ownWrites.waits)),
		restarts: sum(states.map((state) => state.restarts)),
		opened,
	};
}

/** Lets time pass, long enough to open shards, and sometimes moves some. */
function moveShards({
	clock,
	servers,
	user,
	random,
	most,
}: {
	readonly clock: FakeClock;
	readonly servers: Servers;
	readonly user: User;
	readonly random: Random;
	readonly most: number;
}): void {
	clock.advance(random.next() * 100);
	if (random.next() < 0.1) {
		servers.startOrStop(random, most);
	}
	if (random.next() < 0.1) {
		user.takeShard();
	}
}

/** The servers of the cluster. */
class Servers {
	readonly #create: (server: number) => ControllerManager;
	readonly #running: { readonly manager: ControllerManager; readonly stop: AbortController }[] = [];
	readonly #ended: Promise<void>[] = [];
	#started = 0;

	constructor(create: (server: number) => ControllerManager) {
		this.#create = create;
	}

	/** Those of the servers that have not been stopped. */
	get states(): readonly ManagerState[] {
		return this.#running.map(({ manager }) => manager.state());
	}

	start(): void {
		this.#started += 1;
		const manager = this.#create(this.#started);
		const stop = new AbortController();
		this.#running.push({ manager, stop });
		this.#ended.push(manager.run(stop.signal));
	}

	/** Starts another server, or stops one of several. */
	startOrStop(random: Random, most: number): void {
		if (this.#running.length < most && random.next() < 0.5) {
			this.start();
		} else if (this.#running.length > 1) {
			const [stopped] = this.#running.splice(Math.floor(random.next() * this.#running.length), 1);
			stopped?.stop.abort(new Error("the server stops"));
		}
	}

	/** Stops all servers; resolves when they, and those that were stopped before, have ended. */
	async stop(): Promise<void> {
		for (const { stop } of this.#running) {
			stop.abort(new Error("the simulation ends"));
		}
		await Promise.all(this.#ended);
	}
}

/** How many shards the servers work on together. */
function openShards(states: readonly ManagerState[]): number {
	return sum(
		states.flatMap(({ controllers }) =>
			controllers.map(({ run }) => run?.shards?.open.length ?? 0),
		),
	);
}

function sum(numbers: readonly number[]): number {
	return numbers.reduce((total, number) => total + number, 0);
}

/** Whether everything runs, and nothing is queued anywhere. */
function rests({ controllers }: ManagerState): boolean {
	return controllers.every(
		({ phase, run }) =>
			phase === "running" &&
			run !== undefined &&
			[run.requests, ...Object.values(run.mappings)].every(
				({ live, background, delayed, active, held }) =>
					live + background + delayed + active + held === 0,
			),
	);
}

/** The stored values of each label: the sequence goes up by one, unless the label was deleted. */
class History {
	readonly #last = new Map<string, Summary>();

	add(name: string, value: string | undefined): string[] {
		const last = this.#last.get(name);
		if (value === undefined) {
			this.#last.delete(name);
			return [];
		}
		const now = parse(value);
		this.#last.set(name, now);
		return last !== undefined && now.sequence !== last.sequence + 1
			? [`label ${name} went from ${last.sequence}|${last.content} to ${value}`]
			: [];
	}
}

/** The stored labels that do not follow from the stored artists and albums. */
function differences(service: FakeService): string[] {
	const found: string[] = [];
	for (const name of names) {
		const artist = service.stored(idOf(Artist, name));
		const label = service.stored(idOf(Label, name));
		const albums = ["", ...regions].map((region) =>
			albumNames
				.map((album) => service.stored({ ...idOf(Album, album), region }))
				.filter((album) => album?.owner?.name === name)
				.map((album) => (album === undefined ? "" : decode(Album, album).data.value))
				.sort(),
		);
		const copy = service.stored({ ...idOf(Artist, name), region: "us" });
		const original = copy && decode(Artist, copy).data.value;
		const expected = artist && [decode(Artist, artist).data.value, ...albums, original].join(":");
		const actual = label && parse(decode(Label, label).data.value).content;
		if (expected !== actual) {
			found.push(`label ${name} is ${actual}, should be ${expected}`);
		}
	}
	return found;
}

/** Does what users, networks and clusters do. */
class User {
	readonly #service: FakeService;
	readonly #leases: LocalLeases;
	readonly #random: Random;
	readonly #gates: Gate[] = [];
	#values = 0;

	constructor(service: FakeService, leases: LocalLeases, random: Random) {
		this.#service = service;
		this.#leases = leases;
		this.#random = random;
	}

	act(): void {
		if (this.#random.next() < 0.2) {
			this.#copy();
			return;
		}
		const dice = this.#random.next();
		const type = this.#pick(watched);
		if (dice < 0.3) {
			this.#service.put(demo(Artist, this.#pick(names), `v${this.#values++}`));
		} else if (dice < 0.5) {
			// Some at once: changes that cause one reconcile.
			for (let count = 1 + Math.floor(this.#random.next() * 3); count > 0; count--) {
				const owner = idOf(Artist, this.#pick(names));
				this.#service.put(demo(Album, this.#pick(albumNames), `v${this.#values++}`, { owner }));
			}
		} else if (dice < 0.56) {
			this.#service.remove(idOf(Artist, this.#pick(names)));
		} else if (dice < 0.62) {
			this.#service.remove(idOf(Album, this.#pick(albumNames)));
		} else if (dice < 0.72) {
			this.#gates.push(this.#service.shut(`live ${type}`));
		} else if (dice < 0.77) {
			this.#gates.push(this.#service.shut(`snapshot ${type}`));
		} else if (dice < 0.79) {
			this.#gates.push(this.#service.shut("call Write"));
		} else if (dice < 0.81) {
			this.#gates.push(this.#service.shut("ack Write"));
		} else if (dice < 0.89) {
			this.#gates.shift()?.open();
		} else if (dice < 0.92) {
			this.#service.breakWatches(type);
		} else if (dice < 0.95) {
			this.#service.failNext(`resume ${type}`, new ConnectError("compacted", Code.OutOfRange));
		} else if (dice < 0.97) {
			this.#service.failNext("call Write", new ConnectError("try again", Code.Unavailable));
		} else {
			this.#leases.revoke("controllers");
		}
	}

	/** Writes or removes a copy of another region. */
	#copy(): void {
		const region = this.#pick(regions);
		const dice = this.#random.next();
		const artist = idOf(Artist, this.#pick(names));
		const album = idOf(Album, this.#pick(albumNames));
		const value = `v${this.#values++}`;
		if (dice < 0.4) {
			this.#service.put(copyOf(demo(Artist, artist.name, value), region));
		} else if (dice < 0.8) {
			this.#service.put(copyOf(demo(Album, album.name, value, { owner: artist }), region));
		} else {
			this.#service.remove({ ...(dice < 0.9 ? artist : album), region });
		}
	}

	/** Takes a shard from its holder, which may be writing. */
	takeShard(): void {
		if (this.#random.next() < 0.5) {
			this.#gates.push(this.#service.shut("call Write"));
		}
		const shard = shardOf(nameKey(idOf(Artist, this.#pick(names))));
		this.#leases.revoke(`controllers-summary-shard-${shard}`);
	}

	openGates(): void {
		for (const gate of this.#gates) {
			gate.open();
		}
	}

	#pick<T>(choices: readonly [T, ...T[]]): T {
		return choices[Math.floor(this.#random.next() * choices.length)] ?? choices[0];
	}
}

import { create } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError } from "@connectrpc/connect";
import { createInProcessClient, createInProcessTransport } from "@plinth/in-process";
import { NamespaceSchema, type Resource, ResourceService, type WatchSetEvent } from "@plinth/proto";
import {
	idOf,
	Namespace,
	Partition,
	resourceOf,
	Tombstone,
	TypeRegistry,
	typeOf,
} from "@plinth/resource";
import { createResourceService, insecureAllowAll } from "@plinth/resource-service";
import type { Random } from "@plinth/runtime";
import { SeededScheduler, seededRandom } from "@plinth/runtime/testing";
import { createMemoryBackend, type Mutation, type StorageBackend } from "@plinth/storage";
import { forEachSeed } from "@plinth/test-support";
import { describe, expect, it } from "vitest";
import { type Watch, WatchClient } from "./watch-client.ts";
import type { WatchUpdate } from "./watch-update.ts";

const names = ["a", "ab", "abc", "b", "c", "d"] as const;
const prefixes = ["", "a", "ab", "b"] as const;

type WatchSet = Pick<Client<typeof ResourceService>, "watchSet">;
type Stream = (events: AsyncIterable<WatchSetEvent>) => AsyncIterable<WatchSetEvent>;

/** The names that each commit has changed, in the order of their versions. */
type History = readonly { readonly version: string; readonly names: readonly string[] }[];

/** What one watch was told. */
class Follower {
	readonly prefix: string;
	watch: Watch | undefined;
	#known = new Map<string, string>();
	#snapshot = new Map<string, string>();
	#since = "";
	#refusal: Error | undefined;
	#changes: { readonly version: string; readonly names: readonly string[] }[] = [];

	constructor(prefix: string) {
		this.prefix = prefix;
	}

	readonly onUpdate = (update: WatchUpdate): void => {
		switch (update.kind) {
			case "snapshot-begins":
				this.#snapshot = new Map();
				break;
			case "present":
				this.#snapshot.set(nameOf(update.resource), update.resource.version);
				break;
			case "snapshot-complete":
				this.#known = this.#snapshot;
				this.#since = update.version;
				this.#changes = [];
				break;
			case "changes":
				for (const { kind, resource } of update.changes) {
					if (kind === "upsert") {
						this.#known.set(nameOf(resource), resource.version);
					} else {
						this.#known.delete(nameOf(resource));
					}
				}
				this.#changes.push({
					version: update.version,
					names: update.changes.map(({ resource }) => nameOf(resource)),
				});
				break;
			case "ended":
				this.#refusal = update.error;
				break;
			default:
		}
	};

	/** Checks that it knows what is stored, and was told of each commit since its snapshot, once and in order. */
	check(stored: readonly Resource[], history: History): void {
		expect(this.#refusal).toBeUndefined();
		const isInView = (name: string) => name.startsWith(this.prefix);
		expect(this.#changes).toEqual(
			history
				.filter(({ version }) => Number(version) > Number(this.#since))
				.map(({ version, names: changed }) => ({ version, names: changed.filter(isInView) }))
				.filter(({ names: changed }) => changed.length > 0),
		);
		const expected = stored.map((each) => [nameOf(each), each.version] as const);
		expect(Object.fromEntries(this.#known)).toEqual(
			Object.fromEntries(expected.filter(([name]) => isInView(name))),
		);
	}
}

const nameOf = ({ id }: Resource) => id?.name ?? "";

/** Streams that break at random, before or between messages. */
function breaking(random: Random, isCalm: () => boolean): Stream {
	return async function* (events) {
		const mayBreak = (share: number) => {
			if (!isCalm() && random.next() < share) {
				throw new ConnectError("the connection was reset", Code.Unavailable);
			}
		};
		mayBreak(0.2);
		for await (const event of events) {
			yield event;
			mayBreak(0.05);
		}
	};
}

/** Commits changes of one to three resources. */
class Writer {
	readonly history: { readonly version: string; readonly names: readonly string[] }[] = [];
	readonly #backend: StorageBackend;
	readonly #random: Random;
	readonly #stored = new Map<string, Resource>();
	#uids = 0;

	constructor(backend: StorageBackend, random: Random) {
		this.#backend = backend;
		this.#random = random;
	}

	async commit(): Promise<void> {
		const changed = names.filter(() => this.#random.next() < 0.3).slice(0, 3);
		if (changed.length === 0) {
			return;
		}
		const { version, resources } = await this.#backend.commit(
			changed.map((name) => this.#mutationOf(name)),
		);
		for (const [index, name] of changed.entries()) {
			const resource = resources[index];
			if (resource === undefined) {
				this.#stored.delete(name);
			} else {
				this.#stored.set(name, resource);
			}
		}
		this.history.push({ version, names: changed });
	}

	#mutationOf(name: string): Mutation {
		const stored = this.#stored.get(name);
		if (stored?.id !== undefined && this.#random.next() < 0.3) {
			return { op: "delete", id: stored.id, expectedVersion: stored.version };
		}
		this.#uids += 1;
		const id = stored?.id ?? { ...idOf(Namespace, name), uid: `${this.#uids}` };
		const resource = resourceOf(Namespace, { id, data: create(NamespaceSchema) });
		return { op: "put", resource, expectedVersion: stored?.version ?? "" };
	}
}

/** Adds and closes watches while resources change and streams break, and checks what the watches were told. */
async function run(
	seed: number,
	{
		fault = (events) => events,
		logEvents = 10_000,
	}: {
		readonly fault?: Stream;
		readonly logEvents?: number;
	} = {},
): Promise<void> {
	const random = seededRandom(seed);
	const scheduler = new SeededScheduler({ seed });
	const { clock } = scheduler;
	const runtime = { clock, random, scheduler };
	const backend = createMemoryBackend({ runtime, limits: { logEvents } });
	const service = createResourceService({
		...{ backend, runtime, authorizer: insecureAllowAll },
		registry: new TypeRegistry([Partition, Namespace, Tombstone]),
	});
	const transport = createInProcessTransport(
		(router) => router.service(ResourceService, service),
		runtime,
	);
	const served = createInProcessClient(ResourceService, transport);
	let isCalm = false;
	const breakAtRandom = breaking(random, () => isCalm);
	const client: WatchSet = {
		watchSet: (...call) => breakAtRandom(fault(served.watchSet(...call))),
	};
	const watches = new WatchClient({ client, clock, random: () => random.next() });
	const writer = new Writer(backend, random);
	const followers: Follower[] = [];
	for (let step = 0; step < 80; step += 1) {
		const drawn = random.next();
		if (drawn < 0.15) {
			const follower = new Follower(prefixes[Math.floor(random.next() * prefixes.length)] ?? "");
			const query = { type: typeOf(Namespace.type), namePrefix: follower.prefix };
			follower.watch = watches.watch(query, follower.onUpdate);
			followers.push(follower);
		} else if (drawn < 0.2) {
			followers.shift()?.watch?.close();
		} else if (drawn < 0.7) {
			await scheduler.run(writer.commit());
		} else if (drawn < 0.9) {
			await scheduler.runSome(Math.floor(random.next() * 30));
		} else if (drawn < 0.93) {
			watches.retryNow();
		} else {
			await scheduler.advance(random.next() * 1_000);
		}
	}
	isCalm = true;
	await scheduler.advance(120_000);
	const tenancy = { partition: "*", namespace: "*" };
	const { resources } = await backend.list({ type: Namespace.type, tenancy, namePrefix: "" });
	for (const follower of followers) {
		follower.check(resources, writer.history);
	}
	watches.close();
	await backend.close();
}

describe("watches that are added and closed while resources change and connections are lost", () => {
	it("are told of each commit once, in order, and know what is stored", () =>
		forEachSeed(25, (seed) => run(seed)));

	it("begin again if the server can't resume them", () =>
		forEachSeed(15, (seed) => run(seed, { logEvents: 4 })));

	it.each<[fault: string, stream: (random: Random) => Stream]>([
		[
			"dropped",
			(random) =>
				async function* (events) {
					for await (const event of events) {
						if (random.next() > 0.02) {
							yield event;
						}
					}
				},
		],
		[
			"sent twice",
			(random) =>
				async function* (events) {
					for await (const event of events) {
						yield event;
						if (random.next() < 0.02) {
							yield event;
						}
					}
				},
		],
	])("the check notices an event that is %s", async (_fault, stream) => {
		let noticed = 0;
		for (let seed = 1; seed <= 20; seed += 1) {
			await run(seed, { fault: stream(seededRandom(seed)) }).catch(() => {
				noticed += 1;
			});
		}
		expect(noticed).toBeGreaterThan(0);
	});
});

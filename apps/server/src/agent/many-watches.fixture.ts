import { createHash, type Hash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { createRegistry } from "@bufbuild/protobuf";
import { type Client, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { ResourceService, type WatchEvent } from "@plinth/proto";
import { idOf, typeOf } from "@plinth/resource";
import { createPlinthTransport } from "@plinth/rpc-client";
import { seededRandom } from "@plinth/runtime/testing";
import { EtcdProcess } from "@plinth/storage-etcd/testing";
import { expect, onTestFinished } from "vitest";
import { ArtistSchema } from "../../testdata/gen/music/v1/music_pb.ts";
import { Artist, artist } from "../../testdata/music.ts";
import { metric } from "../raw-calls.fixture.ts";
import { musicModuleFile, ServerProcess } from "../server-process.fixture.ts";
import { readiness } from "./started-agent.fixture.ts";

/** Sizes of a run. */
export interface ManyWatches {
	readonly servers: number;
	readonly agents: number;
	readonly watches: number;
	/** How long servers are killed and stopped, in seconds. */
	readonly seconds: number;
	readonly seed: number;
}

/** What a run has found. */
export interface Findings {
	/** What is wrong with watches: what has ended, and what differs from a direct watch. */
	readonly problems: readonly string[];
	/** The events that each query has sent directly. */
	readonly events: readonly number[];
	readonly kills: number;
	readonly stops: number;
	/** How often a watch has moved to another server. */
	readonly moves: number;
}

/** Each watch follows the names with one of these prefixes. */
const prefixes = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"] as const;

const patiently = { timeout: 300_000, interval: 100 };

function requestOf(namePrefix: string) {
	return { type: typeOf(Artist.type), tenancy: { partition: "*", namespace: "*" }, namePrefix };
}

/** What one watch has sent since the end of its snapshot: its number, its hash, and the last of it. */
class Sent {
	readonly #hash: Hash = createHash("sha256");
	count = 0;
	isLive = false;
	last = "";

	add({ event, version }: WatchEvent): void {
		if (event.case === "endOfSnapshot") {
			this.isLive = true;
			return;
		}
		const resource =
			event.case === "upsert" || event.case === "delete" ? event.value.resource : undefined;
		this.last = `${event.case} ${resource?.id?.name}@${resource?.version} ${version}`;
		if (this.isLive && event.case !== "bookmark") {
			this.count += 1;
			this.#hash.update(this.last);
		}
	}

	/** A text that two watches have in common only if they have sent the same. */
	get digest(): string {
		return `${this.count} events, the last ${this.last}, ${this.#hash.copy().digest("hex").slice(0, 12)}`;
	}
}

/** Follows watches until the test is over. */
class Followers {
	readonly #end = new AbortController();
	readonly failures: string[] = [];

	constructor() {
		onTestFinished(() => this.#end.abort());
	}

	watch(client: Client<typeof ResourceService>, prefix: string, name: string): Sent {
		const sent = new Sent();
		this.#follow(name, async (signal) => {
			for await (const event of client.watchList(requestOf(prefix), { signal })) {
				sent.add(event);
			}
		});
		return sent;
	}

	watchSet(
		client: Client<typeof ResourceService>,
		watched: readonly string[],
		name: string,
	): readonly Sent[] {
		const sent = new Map(watched.map((prefix) => [prefix, new Sent()]));
		const watches = watched.map((id) => ({ id, request: requestOf(id) }));
		this.#follow(name, async (signal) => {
			for await (const { watchId, content } of client.watchSet({ watches }, { signal })) {
				if (content.case === "event") {
					sent.get(watchId)?.add(content.value);
				} else {
					this.failures.push(`${name}: ${watchId} has ended: ${content.value?.message}`);
				}
			}
		});
		return [...sent.values()];
	}

	#follow(name: string, follow: (signal: AbortSignal) => Promise<void>): void {
		const { signal } = this.#end;
		follow(signal).then(
			() => this.failures.push(`${name}: the stream has ended`),
			(failure: unknown) => signal.aborted || this.failures.push(`${name}: ${failure}`),
		);
	}
}

/** The transports of the clients: most use the first. */
const transports: readonly ((baseUrl: string) => Transport)[] = [
	(baseUrl) => createPlinthTransport({ baseUrl }),
	(baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "2" }),
	(baseUrl) =>
		createConnectTransport({
			...{ baseUrl, httpVersion: "2", useBinaryFormat: false },
			jsonOptions: { registry: createRegistry(ArtistSchema) },
		}),
];

/** A server that is killed and stopped. */
class Victim {
	readonly #flags: readonly string[];
	#process: ServerProcess;
	#address = "";
	isHarmed = false;

	constructor(flags: readonly string[]) {
		this.#flags = flags;
		this.#process = new ServerProcess(...flags, "--listen=127.0.0.1:0");
	}

	get address(): string {
		return this.#address;
	}

	async start(): Promise<void> {
		this.#address = await this.#process.listening();
	}

	/** Kills the process, and starts another one in its place after a pause. */
	async kill(pauseMs: number): Promise<void> {
		this.isHarmed = true;
		this.#process.kill("SIGKILL");
		await this.#process.ended;
		await sleep(pauseMs);
		this.#process = new ServerProcess(...this.#flags, `--listen=${new URL(this.#address).host}`);
		await this.#process.listening();
		this.isHarmed = false;
	}

	/** Stops the process, and lets it continue after a pause. */
	async stall(pauseMs: number): Promise<void> {
		this.isHarmed = true;
		this.#process.kill("SIGSTOP");
		await sleep(pauseMs);
		this.#process.kill("SIGCONT");
		this.isHarmed = false;
	}
}

/**
 * Runs servers on one etcd and agents in front of them, as processes; opens watches through the agents, and writes while
 * servers are killed and stopped. One more server, which the agents do not know, takes the writes, and shows by a watch of each
 * query what all watches of that query must send.
 */
export async function followManyWatches(sizes: ManyWatches): Promise<Findings> {
	const random = seededRandom(sizes.seed);
	const etcd = await EtcdProcess.start();
	onTestFinished(() => etcd.dispose());
	const flags = [
		...["--storage=etcd", `--etcd-endpoints=${etcd.url}`, `--module=${musicModuleFile}`],
		"--limits-streams-per-subject=10000",
	];
	const direct = new ServerProcess(...flags, "--listen=127.0.0.1:0");
	const directAddress = await direct.listening();
	const victims = Array.from({ length: sizes.servers }, () => new Victim(flags));
	await Promise.all(victims.map((victim) => victim.start()));
	const hosts = victims.map(({ address }) => new URL(address).host).join(",");
	const agents = await Promise.all(
		Array.from({ length: sizes.agents }, () =>
			new ServerProcess("agent", `--servers=${hosts}`, "--listen=127.0.0.1:0").listening(),
		),
	);
	for (const agent of agents) {
		await readiness(agent, /^ready/);
	}

	const writer = createClient(ResourceService, createPlinthTransport({ baseUrl: directAddress }));
	const followers = new Followers();
	const expected = prefixes.map((prefix) => followers.watch(writer, prefix, `directly, ${prefix}`));
	const clients = agents.flatMap((agent) =>
		transports.map((transport) => createClient(ResourceService, transport(agent))),
	);
	const followed: { readonly name: string; readonly query: number; readonly sent: Sent }[] = [];
	for (let count = 0; followed.length < sizes.watches; count += 1) {
		const query = count % prefixes.length;
		// Every other protocol takes as many as one in eight.
		const transport = count % 16 === 0 ? 1 : count % 16 === 8 ? 2 : 0;
		const agent = count % agents.length;
		const client = clients[agent * transports.length + transport] ?? writer;
		const name = `watch ${count} of agent ${agent} by transport ${transport}`;
		if (count % 5 === 0) {
			const queries = [query, (query + 3) % prefixes.length];
			const set = followers.watchSet(
				client,
				queries.map((each) => prefixes[each] ?? ""),
				name,
			);
			followed.push(...set.map((sent, at) => ({ name, query: queries[at] ?? 0, sent })));
		} else {
			followed.push({ name, query, sent: followers.watch(client, prefixes[query] ?? "", name) });
		}
	}
	const areLive = () =>
		followers.failures.length > 0 ||
		[...expected, ...followed.map(({ sent }) => sent)].every(({ isLive }) => isLive);
	await expect.poll(areLive, patiently).toBe(true);

	const deadline = performance.now() + sizes.seconds * 1_000;
	const isOver = () => performance.now() > deadline;
	const writing = writeUntil(isOver, writer, seededRandom(sizes.seed + 1));
	let kills = 0;
	let stops = 0;
	const harms: Promise<void>[] = [];
	while (!isOver()) {
		await sleep(500 + random.next() * 2_000);
		const victim = victims[Math.floor(random.next() * victims.length)];
		const isLastOne = victims.filter(({ isHarmed }) => !isHarmed).length < 2;
		if (victim === undefined || victim.isHarmed || isLastOne) {
			continue;
		}
		if (random.next() < 0.5) {
			kills += 1;
			harms.push(victim.kill(random.next() * 3_000));
		} else {
			stops += 1;
			harms.push(victim.stall(500 + random.next() * 8_000));
		}
	}
	await Promise.all([writing, ...harms]);
	for (const prefix of prefixes) {
		await writer.write({ resource: artist(`${prefix}-last`) });
	}
	const lagging = () =>
		followers.failures.length > 0
			? 0
			: followed.filter(({ sent, query }) => sent.digest !== expected[query]?.digest).length;
	await expect
		.poll(lagging, patiently)
		.toBe(0)
		.catch(() => {});

	const differing = followed.flatMap(({ name, query, sent }) =>
		sent.digest === expected[query]?.digest
			? []
			: [`${name}: ${sent.digest} instead of ${expected[query]?.digest}`],
	);
	const moved = await Promise.all(agents.map((agent) => metric(agent, "plinth_agent_watch_moves")));
	return {
		problems: [...followers.failures, ...differing],
		events: expected.map(({ count }) => count),
		...{ kills, stops },
		moves: moved.reduce((sum, each) => sum + each, 0),
	};
}

/** Writes and deletes, several at a time, so that some commits share a revision. */
async function writeUntil(
	isOver: () => boolean,
	writer: Client<typeof ResourceService>,
	random: { next(): number },
): Promise<void> {
	while (!isOver()) {
		const names = Array.from({ length: 8 }, () => {
			const prefix = prefixes[Math.floor(random.next() * prefixes.length)];
			return `${prefix}-${Math.floor(random.next() * 20)}`;
		});
		await Promise.all(
			[...new Set(names)].map((name) =>
				random.next() < 0.3
					? writer.delete({ id: idOf(Artist, name) })
					: writer.write({ resource: artist(name, "x".repeat(random.next() * 3_000)) }),
			),
		);
		await sleep(200);
	}
}

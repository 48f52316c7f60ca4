import { randomUUID } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import type { LogMethod, Random } from "@plinth/runtime";
import { silentLogger } from "@plinth/runtime";
import { CasFailure, NotFound, type StorageBackend, StorageUnavailable } from "@plinth/storage";
import { allArtists, idOfArtist, putArtist, textOf } from "@plinth/storage/testing";
import { createEtcdBackend } from "../etcd-backend.ts";
import type { EtcdProcess } from "../etcd-process.fixture.ts";
import { EtcdLeases } from "../leases/etcd-leases.ts";
import type { History, Read, SentEvent, Write } from "./check-history.fixture.ts";

/** What a run under faults came to. */
export interface FaultRun {
	readonly history: History;
	/** What was done to etcd. */
	readonly faults: number;
	/** Writes by the responses that their writers received. */
	readonly counts: { readonly done: number; readonly conflicts: number; readonly unknown: number };
	/** Spans of the monotonic clock in which a server held the lease by its own knowledge. */
	readonly holds: readonly { readonly fromMs: number; readonly toMs: number }[];
	/** What watches ended with before the end. */
	readonly brokenWatches: readonly unknown[];
}

const registers = ["a", "b", "c"];
const writersPerServer = 3;

/**
 * Runs a server on each member of a cluster, with clients that write, read and watch and a lease that
 * goes from hand to hand, while members are killed, stopped and started again.
 */
export async function runUnderFaults(
	members: readonly EtcdProcess[],
	seconds: number,
	random: Random,
): Promise<FaultRun> {
	const cluster = { prefix: `/${randomUUID()}`, requestTimeoutMs: 2000 };
	const urls = members.map(({ url }) => url);
	const rotated = urls.map((_, index) => [...urls.slice(index), ...urls.slice(0, index)]);
	const error: LogMethod = (fields, message) => console.error(message, fields);
	const logger = { ...silentLogger, error };
	const backends = await Promise.all(
		rotated.map((endpoints) => createEtcdBackend({ ...cluster, endpoints, logger })),
	);
	const leases = rotated.map(
		(endpoints) => new EtcdLeases({ ...cluster, endpoints, ttlSeconds: 3 }),
	);
	const over = new AbortController();
	const done = new AbortController();
	const writes: Write[] = [];
	const reads: Read[] = [];
	const holds: { fromMs: number; toMs: number }[] = [];
	const brokenWatches: unknown[] = [];
	const watches = backends.map((): SentEvent[] => []);
	const watching = backends.map((backend, server) =>
		follow(backend, watches[server] ?? [], done.signal).catch((reason) =>
			brokenWatches.push(reason),
		),
	);
	const clients = backends.flatMap((backend, server) => [
		...Array.from({ length: writersPerServer }, () => write(backend, writes, random, over.signal)),
		read(backend, server, true, reads, random, over.signal),
		read(backend, server, false, reads, random, over.signal),
	]);
	const holders = leases.map((each) => takeTurns(each, holds, random, over.signal));
	const faults = await disturb(members, seconds, random);
	over.abort();
	await Promise.all([...clients, ...holders]);
	await Promise.all(backends.map((backend) => backend.commit([putArtist(`last-${randomUUID()}`)])));
	const newest = await Promise.all(backends.map((backend) => backend.catchUp(done.signal)));
	const last = Math.max(...newest.map(Number));
	await Promise.all(
		backends.map(async (backend) => {
			while (Number(await backend.catchUp(done.signal)) < last) {}
		}),
	);
	// What is in the state is in the log, and watches read on as long as there is anything.
	await setTimeout(100);
	done.abort(new Error("the run is over"));
	await Promise.all(watching);
	await Promise.all([...backends, ...leases].map((each) => each.close()));
	const outcome = (of: (write: Write) => boolean) => writes.filter(of).length;
	return {
		history: { writes, reads, watches },
		faults,
		counts: {
			done: outcome(({ version }) => version !== undefined),
			conflicts: outcome(({ failed }) => failed),
			unknown: outcome(({ version, failed }) => version === undefined && !failed),
		},
		holds,
		brokenWatches,
	};
}

async function disturb(
	members: readonly EtcdProcess[],
	seconds: number,
	random: Random,
): Promise<number> {
	const endMs = performance.now() + seconds * 1000;
	let faults = 0;
	while (performance.now() < endMs) {
		const member = members[Math.floor(random.next() * members.length)];
		if (member === undefined) {
			break;
		}
		faults += 1;
		if (random.next() < 0.5) {
			await member.kill();
			await setTimeout(random.next() * 1500);
			await member.restart();
		} else {
			// Longer than the election timeout of a second, often.
			await member.suspend();
			await setTimeout(500 + random.next() * 3000);
			member.resume();
		}
		await setTimeout(500 + random.next() * 1500);
	}
	return faults;
}

async function follow(
	backend: StorageBackend,
	sent: SentEvent[],
	signal: AbortSignal,
): Promise<void> {
	try {
		for await (const event of backend.watchList(allArtists, { signal })) {
			if (event.kind === "upsert") {
				const { resource, previous } = event;
				sent.push({
					key: resource.id?.name ?? "",
					version: Number(resource.version),
					replaced: Number(previous?.version ?? 0),
					text: textOf(resource),
				});
			}
		}
	} catch (error) {
		if (!signal.aborted) {
			throw error;
		}
	}
}

async function write(
	backend: StorageBackend,
	writes: Write[],
	random: Random,
	signal: AbortSignal,
): Promise<void> {
	while (!signal.aborted) {
		const key = pick(registers, random);
		const text = randomUUID();
		const expected = await versionOf(backend, key);
		const startMs = performance.now();
		let version: number | undefined;
		let failed = false;
		try {
			const expectedVersion = expected === 0 ? "" : String(expected);
			version = Number((await backend.commit([putArtist(key, text, expectedVersion)])).version);
		} catch (error) {
			failed = error instanceof CasFailure;
			if (!failed && !(error instanceof StorageUnavailable)) {
				throw error;
			}
		}
		const endMs = performance.now();
		writes.push({ key, text, expected, startMs, endMs, failed, ...(version && { version }) });
		await setTimeout(random.next() * 10);
	}
}

async function versionOf(backend: StorageBackend, key: string): Promise<number> {
	try {
		return Number((await backend.read(idOfArtist(key))).version);
	} catch (error) {
		if (error instanceof NotFound) {
			return 0;
		}
		throw error;
	}
}

async function read(
	backend: StorageBackend,
	server: number,
	strong: boolean,
	reads: Read[],
	random: Random,
	signal: AbortSignal,
): Promise<void> {
	const consistency = strong ? "strong" : "eventual";
	while (!signal.aborted) {
		const key = pick(registers, random);
		const startMs = performance.now();
		const common = { key, server, strong, startMs };
		try {
			const resource = await backend.read(idOfArtist(key), { consistency });
			const endMs = performance.now();
			reads.push({ ...common, endMs, version: Number(resource.version), text: textOf(resource) });
		} catch (error) {
			if (error instanceof NotFound) {
				reads.push({ ...common, endMs: performance.now(), version: 0, text: "" });
			} else if (!(error instanceof StorageUnavailable)) {
				throw error;
			}
		}
		await setTimeout(random.next() * 10);
	}
}

/** Holds the lease for a while, over and over. */
async function takeTurns(
	leases: EtcdLeases,
	holds: { fromMs: number; toMs: number }[],
	random: Random,
	signal: AbortSignal,
): Promise<void> {
	while (!signal.aborted) {
		try {
			const hold = await leases.acquire("turns", signal);
			const fromMs = performance.now();
			const ended = new Promise<void>((resolve) => {
				if (hold.signal.aborted) {
					resolve();
				}
				hold.signal.addEventListener("abort", () => resolve());
			});
			await Promise.race([ended, setTimeout(random.next() * 4000)]);
			holds.push({ fromMs, toMs: performance.now() });
			await hold.release();
		} catch (error) {
			if (!signal.aborted) {
				throw error;
			}
		}
	}
}

function pick<T>(from: readonly T[], random: Random): T {
	const picked = from[Math.floor(random.next() * from.length)];
	if (picked === undefined) {
		throw new RangeError("nothing to pick from");
	}
	return picked;
}

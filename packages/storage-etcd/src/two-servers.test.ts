import { randomUUID } from "node:crypto";
import { CasFailure, type StorageBackend, WrongUid } from "@plinth/storage";
import { allArtists, idOfArtist, listArtists, putArtist } from "@plinth/storage/testing";
import { describeWith } from "@plinth/test-support";
import fc from "fast-check";
import { expect, it } from "vitest";
import { createEtcdBackend } from "./etcd-backend.ts";
import { useEtcd } from "./use-etcd.fixture.ts";

/** A commit that a writer makes: it writes some names, and relies on others staying as they are. */
interface Plan {
	readonly server: number;
	readonly writes: readonly number[];
	readonly relies: readonly number[];
}

/** A commit that was acknowledged: per name, the version that it replaced or relied on; "" for none. */
interface Accepted {
	readonly version: string;
	readonly writes: ReadonlyMap<number, string>;
	readonly relies: ReadonlyMap<number, string>;
}

const names = 4;
const plan = fc.record({
	server: fc.nat({ max: 1 }),
	writes: fc.uniqueArray(fc.nat({ max: names - 1 }), { minLength: 1, maxLength: 2 }),
	relies: fc.uniqueArray(fc.nat({ max: names - 1 }), { maxLength: 2 }),
});

async function attempt(
	backend: StorageBackend,
	{ writes, relies }: Plan,
): Promise<Accepted | undefined> {
	const { resources } = await backend.list(allArtists);
	const known = new Map(resources.map((each) => [each.id?.name, each.version]));
	const seen = (of: readonly number[]) =>
		new Map(of.map((name) => [name, known.get(`n${name}`) ?? ""]));
	const accepted = { writes: seen(writes), relies: seen(relies) };
	try {
		const { version } = await backend.commit([
			...[...accepted.writes].map(([name, expected]) => putArtist(`n${name}`, "", expected)),
			...[...accepted.relies].map(([name, expectedVersion]) => {
				return { op: "assert" as const, id: idOfArtist(`n${name}`), expectedVersion };
			}),
		]);
		return { version, ...accepted };
	} catch (error) {
		if (error instanceof CasFailure || error instanceof WrongUid) {
			return undefined;
		}
		throw error;
	}
}

/** Replays commits in the order of their versions; those that share one see the same state. */
function expectSerial(accepted: readonly Accepted[]): void {
	const state = new Map<number, string>();
	const byVersion = Map.groupBy(accepted, ({ version }) => Number(version));
	for (const [, commits] of [...byVersion].sort(([a], [b]) => a - b)) {
		const written = new Set<number>();
		for (const { writes, relies } of commits) {
			for (const [name, expected] of [...writes, ...relies]) {
				expect(state.get(name) ?? "").toBe(expected);
			}
			for (const name of writes.keys()) {
				expect(written.has(name)).toBe(false);
				written.add(name);
			}
		}
		for (const { relies, writes } of commits) {
			for (const name of relies.keys()) {
				expect(written.has(name)).toBe(writes.has(name));
			}
		}
		for (const { writes, version } of commits) {
			for (const name of writes.keys()) {
				state.set(name, version);
			}
		}
	}
}

describeWith("etcd")("two servers on one etcd", () => {
	const etcd = useEtcd();

	it("order the commits of all their writers, none of which relied on what another one changed", async () => {
		const writers = fc.array(fc.array(plan, { minLength: 3, maxLength: 10 }), {
			minLength: 2,
			maxLength: 8,
		});
		await fc.assert(
			fc.asyncProperty(writers, async (plans) => {
				const prefix = `/${randomUUID()}`;
				const open = () => createEtcdBackend({ endpoints: [etcd.url], prefix });
				const backends = [await open(), await open()] as const;
				const accepted: Accepted[] = [];
				await Promise.all(
					plans.map(async (steps) => {
						for (const step of steps) {
							const commit = await attempt(backends[step.server === 0 ? 0 : 1], step);
							if (commit !== undefined) {
								accepted.push(commit);
							}
						}
					}),
				);
				expectSerial(accepted);
				for (const backend of backends) {
					await backend.catchUp(new AbortController().signal);
				}
				expect(await listArtists(backends[0])).toEqual(await listArtists(backends[1]));
				await Promise.all(backends.map((backend) => backend.close()));
			}),
			{ numRuns: 15 },
		);
	});

	it("resume a watch after a version that only the other one has applied, without a gap", async () => {
		const prefix = `/${randomUUID()}`;
		const open = () => createEtcdBackend({ endpoints: [etcd.url], prefix });
		const [writing, watching] = [await open(), await open()];
		for (let i = 0; i < 30; i++) {
			const end = new AbortController();
			const { version: afterVersion } = await writing.commit([putArtist(`before-${i}`, "", "")]);
			const events = watching
				.watchList(allArtists, { signal: end.signal, afterVersion })
				[Symbol.asyncIterator]();
			const next = events.next();
			await writing.commit([putArtist(`after-${i}`, "", "")]);
			expect((await next).value).toMatchObject({ resource: { id: { name: `after-${i}` } } });
			end.abort();
		}
		await Promise.all([writing.close(), watching.close()]);
	});

	it("wait for a version only if they have not applied it", async () => {
		const prefix = `/${randomUUID()}`;
		const open = () => createEtcdBackend({ endpoints: [etcd.url], prefix });
		const [writing, reading] = [await open(), await open()];
		const { signal } = new AbortController();
		for (let i = 0; i < 30; i++) {
			const { version } = await writing.commit([putArtist(`artist-${i}`, "", "")]);
			expect(Number(await reading.catchUp(signal, version))).toBeGreaterThanOrEqual(
				Number(version),
			);
			expect(await reading.lookup(idOfArtist(`artist-${i}`))).toMatchObject({ version });
		}
		const applied = await reading.catchUp(signal, "0");
		const [later] = await Promise.all([
			reading.catchUp(signal, applied),
			writing.commit([putArtist("later", "", "")]),
		]);
		expect(later).toBe(applied);
		await Promise.all([writing.close(), reading.close()]);
	});
});

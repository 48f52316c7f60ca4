import { create } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { type Resource, StatusSchema } from "@plinth/proto";
import { decode, finalizersKey, idOf, isMarkedForDeletion } from "@plinth/resource";
import { decorateBackend, type StorageBackend } from "@plinth/storage";
import { afterEach, describe, expect, it } from "vitest";
import { Artist, artist } from "../demo.fixture.ts";
import { expectRefusal, startService, type TestService } from "../service.fixture.ts";

const writers = Array.from({ length: 64 }, (_, writer) => writer);

/** A storage that does not decide commits again. */
function withoutRebase(backend: StorageBackend): StorageBackend {
	return decorateBackend(backend, {
		commit: (mutations, { rebase, ...options } = {}) => backend.commit(mutations, options),
	});
}

describe.each([
	{ storage: "a storage that decides commits again", decorate: undefined, mostCommits: 64 },
	// All conflict with the first one, and then run alone.
	{ storage: "another storage", decorate: withoutRebase, mostCommits: 127 },
])("many writers of one resource without a version, on $storage", ({ decorate, mostCommits }) => {
	let t: TestService;
	let commits = 0;
	/** Held up until it resolves, if any. */
	let disk: Promise<void> | undefined;

	async function start(): Promise<Resource> {
		disk = undefined;
		t = await startService("in-process", {
			decorate: (backend) => {
				const decorated = decorate?.(backend) ?? backend;
				return decorateBackend(decorated, {
					async commit(mutations, options) {
						commits += 1;
						await disk;
						return decorated.commit(mutations, options);
					},
				});
			},
		});
		const { resource } = await t.client.write({ resource: artist("miles") });
		if (resource === undefined) {
			throw new Error("expected a resource");
		}
		commits = 0;
		return resource;
	}
	afterEach(() => t[Symbol.asyncDispose]());

	/** Expects that they were committed one after the other, in order. */
	function expectInOrder(resources: readonly (Resource | undefined)[], before: Resource): void {
		expect(resources.map((resource) => Number(resource?.version))).toEqual(
			resources.map((_, at) => Number(before.version) + 1 + at),
		);
		expect(commits).toBeLessThanOrEqual(mostCommits);
	}

	it("are all served, in order of arrival", async () => {
		const before = await start();
		const responses = await Promise.all(
			writers.map((writer) => t.client.write({ resource: artist("miles", {}, `genre-${writer}`) })),
		);
		expectInOrder(
			responses.map(({ resource }) => resource),
			before,
		);
		expect(
			responses.map(({ resource }) => resource && decode(Artist, resource).data.genre),
		).toEqual(writers.map((writer) => `genre-${writer}`));
	});

	it("keep the statuses of each other", async () => {
		const before = await start();
		const { id, generation } = before;
		const status = create(StatusSchema, { observedGeneration: generation });
		const keys = writers.map((writer) => `key-${writer % 16}`);
		const responses = await Promise.all(
			keys.map((key) => t.client.writeStatus({ ...(id && { id }), key, status })),
		);
		expectInOrder(
			responses.map(({ resource }) => resource),
			before,
		);
		expect(Object.keys(responses.at(-1)?.resource?.status ?? {})).toHaveLength(16);
	});

	it("mark it for deletion once", async () => {
		await start();
		await t.client.write({
			resource: { ...artist("miles"), metadata: { [finalizersKey]: "held" } },
		});
		const responses = await Promise.all(
			writers.map(() => t.client.delete({ id: idOf(Artist, "miles") })),
		);
		expect(responses.filter(({ version }) => version !== "")).toHaveLength(1);
		const { resource } = await t.client.read({ id: idOf(Artist, "miles") });
		expect(resource && isMarkedForDeletion(resource)).toBe(true);
	});

	it("create it once, and replace it after that", async () => {
		await start();
		const responses = await Promise.all(
			writers.map(() => t.client.write({ resource: artist("new") })),
		);
		expect(new Set(responses.map(({ resource }) => resource?.id?.uid)).size).toBe(1);
		const creators = await Promise.allSettled(
			writers.map(() => t.client.write({ resource: artist("newer"), createOnly: true })),
		);
		expect(creators.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
		for (const creator of creators) {
			if (creator.status === "rejected") {
				expect(creator.reason).toMatchObject({ code: Code.AlreadyExists });
			}
		}
	});

	it("are refused alone if they are not valid", async () => {
		const { id } = await start();
		const outcomes = await Promise.allSettled(
			writers.map((writer) =>
				t.client.write({
					resource: {
						...artist("miles"),
						...(writer % 8 === 3 && id && { owner: idOf(Artist, "john") }),
					},
				}),
			),
		);
		expect(
			outcomes.flatMap(({ status }, writer) => (status === "rejected" ? [writer] : [])),
		).toEqual(writers.filter((writer) => writer % 8 === 3));
		for (const outcome of outcomes) {
			if (outcome.status === "rejected") {
				expect(outcome.reason).toMatchObject({ rawMessage: "owner cannot be changed" });
			}
		}
	});

	it("do not write to another incarnation", async () => {
		const { id, generation } = await start();
		const status = create(StatusSchema, { observedGeneration: generation });
		const writeStatus = () => t.client.writeStatus({ ...(id && { id }), key: "k", status });
		const outcomes = await Promise.allSettled([
			writeStatus(),
			t.client.delete({ id: idOf(Artist, "miles") }),
			writeStatus(),
			t.client.write({ resource: artist("miles") }),
			writeStatus(),
			t.client.delete({ ...(id && { id }) }),
		]);
		for (const outcome of outcomes) {
			if (outcome.status === "rejected") {
				expect(outcome.reason).toMatchObject({ code: Code.NotFound });
			}
		}
		await t.client.write({ resource: artist("miles") });
		const { resource } = await t.client.read({ id: idOf(Artist, "miles") });
		expect(resource?.id?.uid).not.toBe(id?.uid);
		expect(resource?.status).toEqual({});
	});

	it("leave the queue when they are canceled, and the others go on", async () => {
		const before = await start();
		const { promise, resolve } = Promise.withResolvers<void>();
		disk = promise;
		const gone = new AbortController();
		const calls = writers.map((writer) =>
			t.client.write(
				{ resource: artist("miles") },
				writer % 2 === 1 ? { signal: gone.signal } : {},
			),
		);
		const outcomes = Promise.allSettled(calls);
		await new Promise((settled) => setImmediate(settled));
		gone.abort();
		resolve();
		const settled = await outcomes;
		expect(settled.map(({ status }) => status === "fulfilled")).toEqual(
			writers.map((writer) => writer % 2 === 0),
		);
		const after = await t.client.write({ resource: artist("miles") });
		expect(Number(after.resource?.version)).toBeGreaterThan(Number(before.version) + 32);
	});
});

describe("writers that name a version", () => {
	it("learn from one commit or one read that it is stale", async () => {
		let commits = 0;
		let strongReads = 0;
		await using t = await startService("in-process", {
			decorate: (backend) =>
				decorateBackend(backend, {
					commit(mutations, options) {
						commits += 1;
						return backend.commit(mutations, options);
					},
					lookup(name, options) {
						strongReads += options?.consistency === "strong" ? 1 : 0;
						return backend.lookup(name, options);
					},
				}),
		});
		const { resource: first } = await t.client.write({ resource: artist("miles") });
		commits = 0;
		strongReads = 0;
		const stale = { ...artist("miles"), version: first?.version ?? "" };
		const outcomes = await Promise.allSettled(
			writers.map(() => t.client.write({ resource: stale })),
		);
		expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
		for (const outcome of outcomes) {
			if (outcome.status === "rejected") {
				expect(outcome.reason).toMatchObject({ code: Code.Aborted });
			}
		}
		expect(commits).toBeLessThanOrEqual(writers.length);
		commits = 0;
		await expectRefusal(t.client.write({ resource: stale }), Code.Aborted, /CAS operation failed/);
		expect({ commits, strongReads }).toEqual({ commits: 0, strongReads: 0 });
	});
});

describe("a writer without a version", () => {
	it("is served although others with versions, or other servers, come first again and again", async () => {
		let interferences = 0;
		await using t = await startService("in-process", {
			decorate: (backend) =>
				decorateBackend(backend, {
					async commit(mutations, { rebase, ...options } = {}) {
						const [first] = mutations;
						const stored = await backend.lookup(idOf(Artist, "miles"));
						if (stored !== undefined && first?.op === "put" && interferences < 12) {
							interferences += 1;
							await backend.commit([
								{ op: "put", resource: stored, expectedVersion: stored.version },
							]);
						}
						return backend.commit(mutations, options);
					},
				}),
		});
		await t.client.write({ resource: artist("miles") });
		await t.client.write({ resource: artist("miles", {}, "rock") });
		expect(interferences).toBe(12);
		const { resource } = await t.client.read({ id: idOf(Artist, "miles") });
		expect(resource && decode(Artist, resource).data.genre).toBe("rock");
	});
});

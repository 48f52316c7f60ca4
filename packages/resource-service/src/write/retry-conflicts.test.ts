import { create, fromJson } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { type Resource, StatusSchema } from "@plinth/proto";
import { idOf, resourceOf } from "@plinth/resource";
import { type Clock, systemRuntime } from "@plinth/runtime";
import { FakeClock, seededRandom } from "@plinth/runtime/testing";
import { CasFailure, decorateBackend, type StorageBackend } from "@plinth/storage";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Artist, artist } from "../demo.fixture.ts";
import { gigType } from "../gig.fixture.ts";
import { expectRefusal, startService, type TestService } from "../service.fixture.ts";

describe("writes that conflict with others", () => {
	let t: TestService;
	/** How many of the next commits fail. */
	let conflicts = 0;
	let commits = 0;
	/** Runs before each commit, as another writer would. */
	let meanwhile: (backend: StorageBackend) => Promise<unknown>;
	/** The delays before further attempts, in milliseconds. */
	let delaysMs: number[] = [];

	beforeEach(async () => {
		conflicts = 0;
		commits = 0;
		delaysMs = [];
		meanwhile = async () => {};
		const fake = new FakeClock();
		const clock: Clock = {
			now: () => fake.now(),
			monotonic: () => fake.monotonic(),
			setTimer(delayMs, callback) {
				delaysMs.push(delayMs);
				return systemRuntime.clock.setTimer(0, callback);
			},
		};
		t = await startService("in-process", {
			runtime: { ...systemRuntime, clock, random: seededRandom(1) },
			decorate: (backend) =>
				decorateBackend(backend, {
					async commit(mutations, options) {
						commits += 1;
						await meanwhile(backend);
						if (conflicts > 0) {
							conflicts -= 1;
							throw new CasFailure([0], ["injected"]);
						}
						return backend.commit(mutations, options);
					},
				}),
		});
		commits = 0;
	});
	afterEach(() => t[Symbol.asyncDispose]());

	async function write(resource: Resource): Promise<Resource> {
		const response = await t.client.write({ resource });
		if (response.resource === undefined) {
			throw new Error("expected a resource");
		}
		return response.resource;
	}

	/** Lets another writer come first, once. */
	function interfereOnce(): void {
		meanwhile = async (backend) => {
			meanwhile = async () => {};
			const stored = await backend.read(idOf(Artist, "miles"));
			await backend.commit([{ op: "put", resource: stored, expectedVersion: stored.version }]);
		};
	}

	it("are retried at once, and then after delays that double and are jittered", async () => {
		conflicts = 6;
		await write(artist("miles"));
		expect(commits).toBe(7);
		expect(delaysMs).toHaveLength(5);
		for (const [index, delayMs] of delaysMs.entries()) {
			expect(delayMs).toBeGreaterThanOrEqual(2 ** index * 0.5);
			expect(delayMs).toBeLessThan(2 ** index * 1.5);
		}
		expect(new Set(delaysMs.map((delayMs, index) => delayMs / 2 ** index)).size).toBe(5);
	});

	it("are given up as Aborted in the end", async () => {
		conflicts = 64;
		await expectRefusal(
			write(artist("miles")),
			Code.Aborted,
			"write conflicted with concurrent writes 64 times: try again",
		);
		expect(commits).toBe(64);
	});

	it("run the hooks of the type once, however often they are tried", async () => {
		const ran: string[] = [];
		const Gig = gigType({
			mutate: () => ran.push("mutate"),
			validate: () => ran.push("validate"),
		});
		t.registry.register(Gig);
		conflicts = 3;
		const data = fromJson(Gig.schema, { title: "live", seats: 1 });
		await write(resourceOf(Gig, { id: idOf(Gig, "gig"), data }));
		expect(commits).toBe(4);
		expect(ran).toEqual(["mutate", "validate"]);
	});

	it("land over what came meanwhile, where no version is given", async () => {
		const before = await write(artist("miles"));
		interfereOnce();
		const after = await write(artist("miles", {}, "rock"));
		expect(Number(after.version)).toBe(Number(before.version) + 2);
	});

	it("never land over what came meanwhile, where a version is given", async () => {
		const stored = await write(artist("miles"));
		const { id, version } = stored;
		const stale = /^CAS operation failed .*: given "(\d+)", stored "(?!\1")\d+"$/;
		interfereOnce();
		await expectRefusal(write({ ...artist("miles"), version }), Code.Aborted, stale);
		const fresh = await write(artist("miles"));
		interfereOnce();
		const status = create(StatusSchema, { observedGeneration: fresh.generation });
		await expectRefusal(
			t.client.writeStatus({ ...(id && { id }), version: fresh.version, key: "k", status }),
			Code.Aborted,
			stale,
		);
		const newest = await write(artist("miles"));
		interfereOnce();
		await expectRefusal(
			t.client.delete({ ...(id && { id }), version: newest.version }),
			Code.Aborted,
			stale,
		);
		expect((await t.client.read({ id: idOf(Artist, "miles") })).resource).toBeDefined();
	});

	it("of a status and of a deletion are retried too", async () => {
		const { id, generation } = await write(artist("miles"));
		const status = create(StatusSchema, { observedGeneration: generation });
		conflicts = 2;
		await t.client.writeStatus({ ...(id && { id }), key: "k", status });
		conflicts = 2;
		const { version } = await t.client.delete({ ...(id && { id }) });
		expect(version).not.toBe("");
	});

	it("are not retried after another failure", async () => {
		meanwhile = async () => {
			throw new Error("a bug");
		};
		await expectRefusal(write(artist("miles")), Code.Internal, "internal error");
		expect(commits).toBe(1);
	});
});

import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { ConditionSchema } from "@plinth/proto";
import { idOf, resourceOf } from "@plinth/resource";
import { encodeFence, LocalLeases, systemRuntime } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import {
	type Consistency,
	createMemoryBackend,
	decorateBackend,
	Exhausted,
	Fenced,
	Refused,
	type StorageBackend,
	StorageUnavailable,
	VersionCompacted,
	WatchClosed,
} from "@plinth/storage";
import { describe, expect, it } from "vitest";
import { AlbumSchema } from "../../testdata/gen/acme/demo/v2/demo_pb.ts";
import { Album, Artist, album, artist } from "../demo.fixture.ts";
import { connections, expectRefusal, startService } from "../service.fixture.ts";

/** What a failure of the storage is to the caller. */
const failures = [
	{
		rule: "a fenced write is Aborted with the lease's name",
		failure: new Fenced("singletons"),
		code: Code.Aborted,
		message: "lease singletons has another holder",
	},
	{
		rule: "a refusal of a decorator has the code that it gives",
		failure: new Refused(Code.FailedPrecondition, "referenced by demo.v2.Album default/blue"),
		code: Code.FailedPrecondition,
		message: "referenced by demo.v2.Album default/blue",
	},
	{
		rule: "a limit of the storage is ResourceExhausted",
		failure: new Exhausted("the state holds too much"),
		code: Code.ResourceExhausted,
		message: "the state holds too much",
	},
	{
		rule: "storage that can't be reached is Unavailable",
		failure: new StorageUnavailable("no quorum"),
		code: Code.Unavailable,
		message: "no quorum",
	},
	{
		rule: "what only a bug explains is Internal, with nothing of its insides",
		failure: new Error("secret of the storage"),
		code: Code.Internal,
		message: "internal error",
	},
] as const;

const watchFailures = [
	{
		rule: "a consumer that falls too far behind is Aborted: discard and watch again",
		failure: new WatchClosed("the watch fell behind"),
		code: Code.Aborted,
		message: "the watch fell behind: discard the received state and watch again",
	},
	{
		rule: "a version that is not reached back to is OutOfRange: watch again without it",
		failure: new VersionCompacted("7", "compacted"),
		code: Code.OutOfRange,
		message: "can't watch after version 7: compacted: watch again without a version",
	},
] as const;

describe.each(connections)("failures of the storage, %s", (connection) => {
	it.each(failures)("$rule", async ({ failure, code, message }) => {
		const logged: string[] = [];
		let broken = false;
		await using t = await startService(connection, {
			logger: {
				debug: () => {},
				info: () => {},
				warn: () => {},
				error: (_, line) => logged.push(line),
			},
			decorate: (backend) =>
				decorateBackend(backend, {
					commit: (mutations, options) =>
						broken ? Promise.reject(failure) : backend.commit(mutations, options),
				}),
		});
		broken = true;
		await expectRefusal(t.client.write({ resource: artist("miles") }), code, message);
		expect(logged).toHaveLength(code === Code.Internal ? 1 : 0);
	});

	it("sends the details of a refusal along", async () => {
		const refusal = new Refused(Code.FailedPrecondition, "blocked", [
			{ desc: ConditionSchema, value: { type: "Blocker" } },
		]);
		await using t = await startService(connection, {
			decorate: (backend) =>
				decorateBackend(backend, {
					commit: (mutations, options) =>
						mutations.some(
							(mutation) => mutation.op === "put" && mutation.resource.id?.name === "x",
						)
							? Promise.reject(refusal)
							: backend.commit(mutations, options),
				}),
		});
		const error = await t.client.write({ resource: artist("x") }).catch(ConnectError.from);
		expect(error).toBeInstanceOf(ConnectError);
		expect(error instanceof ConnectError && error.findDetails(ConditionSchema)).toEqual([
			create(ConditionSchema, { type: "Blocker" }),
		]);
	});

	it.each(watchFailures)("$rule", async ({ failure, code, message }) => {
		await using t = await startService(connection, {
			decorate: (backend) =>
				decorateBackend(backend, {
					// biome-ignore lint/correctness/useYield: it fails before there is anything.
					async *watchList() {
						throw failure;
					},
				}),
		});
		const drain = async () => {
			for await (const _ of t.client.watchList({ type: Artist.type })) {
				// Nothing comes.
			}
		};
		await expectRefusal(drain(), code, message);
	});

	it("refuses the late write of a holder that has lost its lease", async () => {
		const leases = new LocalLeases();
		await using t = await startService(connection, {
			decorate: () => createMemoryBackend({ leases }),
		});
		const never = new AbortController().signal;
		const hold = await leases.acquire("singletons", never);
		const options = { headers: { "x-plinth-fence": encodeFence(hold.fence) } };
		await t.client.write({ resource: artist("miles") }, options);
		leases.revoke("singletons");
		await leases.acquire("singletons", never);
		await expectRefusal(
			t.client.write({ resource: artist("miles") }, options),
			Code.Aborted,
			"lease singletons has another holder",
		);
		await expectRefusal(
			t.client.write({ resource: artist("miles") }, { headers: { "x-plinth-fence": "x" } }),
			Code.InvalidArgument,
			"x-plinth-fence invalid: is not a fence",
		);
	});
});

describe.each(connections)("the consistent mode, %s", (connection) => {
	it("makes Read, List and the snapshot of WatchList strong, and is off otherwise", async () => {
		const asked: (Consistency | undefined)[] = [];
		const noting = (backend: StorageBackend): StorageBackend =>
			decorateBackend(backend, {
				read: (id, options) => {
					asked.push(options?.consistency);
					return backend.read(id, options);
				},
				snapshot: (query, options) => {
					asked.push(options?.consistency);
					return backend.snapshot(query, options);
				},
				watchList: (query, options) => {
					asked.push(options.consistency);
					return backend.watchList(query, options);
				},
			});
		await using t = await startService(connection, { decorate: noting });
		await t.client.write({ resource: artist("miles") });
		for (const [headers, consistency] of [
			[{ "x-plinth-consistency-mode": "consistent" }, "strong"],
			[{}, "eventual"],
		] as const) {
			asked.length = 0;
			await t.client.read({ id: idOf(Artist, "miles") }, { headers });
			await t.client.list({ type: Artist.type, tenancy: {} }, { headers });
			const abort = new AbortController();
			const events = t.client.watchList({ type: Artist.type }, { headers, signal: abort.signal });
			await events[Symbol.asyncIterator]().next();
			abort.abort();
			expect(asked).toEqual([consistency, consistency, consistency]);
		}
	});
});

describe("bookmarks", () => {
	it("say on an idle stream how far it has come", async () => {
		const clock = new FakeClock();
		await using t = await startService("in-process", { runtime: { ...systemRuntime, clock } });
		const abort = new AbortController();
		const events = t.client
			.watchList({ type: Artist.type, bookmarks: true }, { signal: abort.signal })
			[Symbol.asyncIterator]();
		await events.next();
		await t.client.write({ resource: album("blue") });
		const { version } = await t.client.list({ type: Album.type, tenancy: {} });
		const next = events.next();
		await clock.advanceAsync(60_000);
		const { value } = await next;
		expect(value).toMatchObject({ event: { case: "bookmark" }, version });
		abort.abort();
	});
});

describe.each(connections)("large lists, %s", (connection) => {
	it("are refused as a whole and returned in pages", async () => {
		await using t = await startService(connection);
		for (let n = 0; n < 18; n += 1) {
			const data = create(AlbumSchema, { title: "x".repeat(1_000_000) });
			await t.client.write({ resource: resourceOf(Album, { id: idOf(Album, `a${n}`), data }) });
		}
		const request = { type: Album.type, tenancy: {} };
		await expectRefusal(
			t.client.list(request),
			Code.ResourceExhausted,
			"the list is larger than 16777216 bytes: set page_size to read it in pages",
		);
		const first = await t.client.list({ ...request, pageSize: 1000 });
		const second = await t.client.list({
			...request,
			pageSize: 1000,
			pageToken: first.nextPageToken,
		});
		expect(first.resources.length + second.resources.length).toBe(18);
		expect(second.nextPageToken).toBe("");
	});
});

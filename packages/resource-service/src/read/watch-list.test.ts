import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Resource, WatchEvent } from "@plinth/proto";
import { idOf, newUlid, resourceOf } from "@plinth/resource";
import { systemRuntime } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import type { Mutation } from "@plinth/storage";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ArtistSchema as ArtistV1Schema } from "../../testdata/gen/acme/demo/v1/demo_pb.ts";
import { PolicyAuthorizer, policyAccess } from "../access/policy-authorizer.ts";
import { Artist, ArtistV1, artist } from "../demo.fixture.ts";
import { connections, expectRefusal, startService, type TestService } from "../service.fixture.ts";

describe.each(connections)("a watch of commits with several changes, %s", (connection) => {
	let t: TestService;
	let events: AsyncIterator<WatchEvent>;
	const end = new AbortController();
	beforeEach(async () => {
		t = await startService(connection);
		events = t.client
			.watchList({ type: Artist.type }, { signal: end.signal })
			[Symbol.asyncIterator]();
		await events.next();
	});
	afterEach(async () => {
		await events.return?.();
		await t[Symbol.asyncDispose]();
	});

	const inView = (name: string) => withUid(artist(name));
	const outOfView = (name: string) =>
		withUid(
			resourceOf(ArtistV1, { id: idOf(ArtistV1, name), data: create(ArtistV1Schema, { name }) }),
		);

	function withUid(resource: Resource): Resource {
		return resource.id === undefined
			? resource
			: { ...resource, id: { ...resource.id, uid: newUlid(systemRuntime) } };
	}

	async function commit(...resources: readonly Resource[]): Promise<string> {
		const puts = resources.map(
			(resource): Mutation => ({ op: "put", resource, expectedVersion: "" }),
		);
		return (await t.backend.commit(puts)).version;
	}

	/** Names and versions of the next upserts. */
	async function take(count: number): Promise<readonly unknown[]> {
		const taken: unknown[] = [];
		while (taken.length < count) {
			const { value, done } = await events.next();
			if (done) {
				throw new Error("the watch ended");
			}
			const { event, version }: WatchEvent = value;
			const name = event.case === "upsert" ? event.value.resource?.id?.name : event.case;
			taken.push([name, version]);
		}
		return taken;
	}

	it("has the version on the last event of a commit", async () => {
		const version = await commit(inView("a"), inView("b"), inView("c"));
		expect(await take(3)).toEqual([
			["a", ""],
			["b", ""],
			["c", version],
		]);
	});

	it("has it on the last event that is in view", async () => {
		const first = await commit(inView("a"), outOfView("b"), inView("c"), outOfView("d"));
		expect(await take(2)).toEqual([
			["a", ""],
			["c", first],
		]);
		const second = await commit(outOfView("e"), inView("f"));
		expect(await take(1)).toEqual([["f", second]]);
	});

	it("says nothing of a commit that is out of view", async () => {
		await commit(outOfView("a"), outOfView("b"));
		const version = await commit(inView("c"));
		expect(await take(1)).toEqual([["c", version]]);
	});
});

describe("a watch whose token ends within a commit of several changes", () => {
	it("says no more of it", async () => {
		const authorizer = new PolicyAuthorizer();
		authorizer.grant("reader", { subject: "reader", rules: [{ operations: ["operator:read"] }] });
		await using t = await startService("in-process", { authorizer });
		const events = t.client
			.watchList({ type: Artist.type }, { headers: { authorization: "Bearer reader" } })
			[Symbol.asyncIterator]();
		await events.next();
		await t.backend.commit(
			["a", "b", "c"].map((name): Mutation => {
				const resource = artist(name);
				const id = resource.id && { ...resource.id, uid: name };
				return { op: "put", resource: { ...resource, ...(id && { id }) }, expectedVersion: "" };
			}),
		);
		await events.next();
		await events.next();
		authorizer.revoke("reader");
		const last = events.next().then(() => undefined);
		await expectRefusal(last, Code.Unauthenticated, /watch again with a valid token$/);
	});
});

it("a watch ends with the error for which the access of its token has ended", async () => {
	const end = new AbortController();
	const policy = { subject: "reader", rules: [{ operations: ["operator:read"] }] };
	const authorizer = { authenticate: () => policyAccess(policy, end.signal) };
	await using t = await startService("in-process", { authorizer });
	const events = t.client.watchList({ type: Artist.type })[Symbol.asyncIterator]();
	await events.next();
	const last = events.next().then(() => undefined);
	end.abort(new ConnectError("nobody knows the rights", Code.Unavailable));
	await expectRefusal(last, Code.Unavailable, /nobody knows the rights$/);
});

describe("bookmarks of a watch to which all that comes is hidden", () => {
	it("come as often as where nothing comes, and can be resumed from", async () => {
		const clock = new FakeClock();
		await using t = await startService("in-process", { runtime: { ...systemRuntime, clock } });
		const end = new AbortController();
		const events = t.client
			.watchList({ type: Artist.type, bookmarks: true }, { signal: end.signal })
			[Symbol.asyncIterator]();
		await events.next();
		const next = events.next();
		let hidden = "";
		for (let second = 0; second < 5; second += 1) {
			await clock.advanceAsync(999);
			const id = { ...idOf(ArtistV1, `hidden-${second}`), uid: `${second}` };
			const resource = resourceOf(ArtistV1, { id, data: create(ArtistV1Schema, { name: "h" }) });
			hidden = (await t.backend.commit([{ op: "put", resource, expectedVersion: "" }])).version;
		}
		await clock.advanceAsync(5);
		const { value: bookmark } = await next;
		expect([bookmark?.event.case, bookmark?.version]).toEqual(["bookmark", hidden]);
		const resumed = t.client
			.watchList({ type: Artist.type, afterVersion: hidden }, { signal: end.signal })
			[Symbol.asyncIterator]();
		const seen = resumed.next();
		await t.client.write({ resource: artist("seen") });
		expect((await seen).value?.event.case).toBe("upsert");
		end.abort();
	});
});

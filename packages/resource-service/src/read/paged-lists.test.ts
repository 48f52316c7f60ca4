import { Code } from "@connectrpc/connect";
import { systemRuntime } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Album, Artist, artist } from "../demo.fixture.ts";
import { resourceServiceLimits } from "../requests/limits.ts";
import { expectRefusal, startService, type TestService } from "../service.fixture.ts";
import { type PagedList, PagedLists } from "./paged-lists.ts";

describe("lists that are read page by page", () => {
	let t: TestService;
	let clock: FakeClock;
	beforeEach(async () => {
		clock = new FakeClock();
		t = await startService("in-process", { runtime: { ...systemRuntime, clock } });
		for (const name of ["a", "b", "c", "d"]) {
			await t.client.write({ resource: artist(name) });
		}
	});
	afterEach(() => t[Symbol.asyncDispose]());

	const request = { type: Artist.type, tenancy: {}, pageSize: 1 };

	async function page(pageToken = "") {
		const { resources, nextPageToken } = await t.client.list({ ...request, pageToken });
		return { names: resources.map(({ id }) => id?.name), next: nextPageToken };
	}

	const runOut = "page_token has expired: list again from the start";

	it("can be gone on with for five minutes, and no longer", async () => {
		const { next } = await page();
		clock.advance(resourceServiceLimits.pageTokenMs - 1);
		expect((await page(next)).names).toEqual(["b"]);
		const second = await page();
		clock.advance(resourceServiceLimits.pageTokenMs);
		await expectRefusal(page(second.next), Code.OutOfRange, runOut);
	});

	it("get another five minutes with each page", async () => {
		let next = "";
		const names = [];
		for (let count = 0; count < 4; count += 1) {
			const taken = await page(next);
			names.push(...taken.names);
			next = taken.next;
			clock.advance(resourceServiceLimits.pageTokenMs - 1);
		}
		expect(names).toEqual(["a", "b", "c", "d"]);
		expect(next).toBe("");
	});

	it("are bounded in number: the one that was used least recently gives way", async () => {
		const oldest = await page();
		const used = await page();
		for (let count = 2; count < resourceServiceLimits.pagedLists; count += 1) {
			await page();
		}
		const kept = await page(used.next);
		expect(kept.names).toEqual(["b"]);
		// One more than there is room for.
		await page();
		await expectRefusal(page(oldest.next), Code.OutOfRange, runOut);
		expect((await page(kept.next)).names).toEqual(["c"]);
	});

	it("are ended where their snapshots retain too much memory, and the token says to list again", async () => {
		await using bounded = await startService("in-process", {
			limits: { retainedBytes: 40_000, logBytes: 10_000 },
		});
		const { client } = bounded;
		for (const name of ["a", "b"]) {
			await client.write({ resource: artist(name) });
		}
		const first = await client.list(request);
		for (let count = 0; count < 300; count += 1) {
			await client.write({ resource: artist("a") });
			await client.write({ resource: artist("b") });
			await client.list(request);
		}
		await expectRefusal(
			client.list({ ...request, pageToken: first.nextPageToken }),
			Code.OutOfRange,
			runOut,
		);
		const newest = await client.list(request);
		const { resources } = await client.list({ ...request, pageToken: newest.nextPageToken });
		expect(resources.map(({ id }) => id?.name)).toEqual(["b"]);
	});

	it("return no token with the last page, even if it is full", async () => {
		const { resources, nextPageToken } = await t.client.list({ ...request, pageSize: 4 });
		expect(resources).toHaveLength(4);
		expect(nextPageToken).toBe("");
	});

	it("refuse a token of another list", async () => {
		const { next } = await page();
		await expectRefusal(
			t.client.list({ ...request, type: Album.type, pageToken: next }),
			Code.InvalidArgument,
			"page_token invalid: belongs to another list",
		);
	});

	it.each(["x", "x.y", ".", `${"x".repeat(26)}.W10`])("refuse the token %s", async (token) => {
		await expectRefusal(
			page(token),
			Code.InvalidArgument,
			"page_token invalid: was not returned by a list",
		);
	});
});

describe("the share of a subject", () => {
	const resource = artist("a");

	function open(lists: PagedLists, subject: string | undefined) {
		let ended = false;
		const list: PagedList = {
			snapshot: {
				version: "1",
				familyVersion: "1",
				resources: () => [resource],
				visit: () => [resource],
				hold: () => {},
				get ended() {
					return ended;
				},
				release() {
					ended = true;
				},
			},
			queryKey: "",
			subject,
		};
		return { list, token: lists.tokenAfter(list, resource, "") };
	}

	it("is a quarter of the lists: a caller with more loses one if there are too many, others lose none", () => {
		const lists = new PagedLists({ ...systemRuntime, clock: new FakeClock() });
		const quiet = open(lists, "quiet");
		const own = open(lists, undefined);
		const greedy = Array.from({ length: resourceServiceLimits.pagedLists + 10 }, () =>
			open(lists, "greedy"),
		);
		expect(quiet.list.snapshot.ended).toBe(false);
		expect(own.list.snapshot.ended).toBe(false);
		expect(lists.resume(quiet.token, "").list).toBe(quiet.list);
		expect(greedy.map(({ list }) => list.snapshot.ended)).toEqual(
			greedy.map((_, index) => index < 12),
		);
	});

	it("is no matter where nobody has more: the one that was used least recently gives way", () => {
		const lists = new PagedLists({ ...systemRuntime, clock: new FakeClock() });
		const held = Array.from({ length: resourceServiceLimits.pagedLists + 1 }, (_, index) =>
			open(lists, `subject-${index % 8}`),
		);
		expect(held.map(({ list }) => list.snapshot.ended)).toEqual(held.map((_, index) => index < 1));
	});

	it("takes no room for lists that the storage has ended", () => {
		const lists = new PagedLists({ ...systemRuntime, clock: new FakeClock() });
		const quiet = open(lists, "quiet");
		const greedy = Array.from({ length: resourceServiceLimits.pagedLists - 1 }, () =>
			open(lists, "greedy"),
		);
		for (const { list } of greedy.slice(500)) {
			list.snapshot.release();
			lists.forget(list);
		}
		const others = Array.from({ length: 400 }, () => open(lists, "other"));
		expect(
			[quiet, ...greedy.slice(0, 500), ...others].map(({ list }) => list.snapshot.ended),
		).not.toContain(true);
	});
});

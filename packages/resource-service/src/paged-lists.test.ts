import { Code } from "@connectrpc/connect";
import { systemRuntime } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Album, Artist, artist } from "../testdata/demo.ts";
import { limits } from "./limits.ts";
import { expectRefusal, startService, type TestService } from "./service.fixture.ts";

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

	const runOut = "page_token has run out: list again from the start";

	it("can be gone on with for five minutes, and no longer", async () => {
		const { next } = await page();
		clock.advance(limits.pageTokenMs - 1);
		expect((await page(next)).names).toEqual(["b"]);
		const second = await page();
		clock.advance(limits.pageTokenMs);
		await expectRefusal(page(second.next), Code.OutOfRange, runOut);
	});

	it("get another five minutes with each page", async () => {
		let next = "";
		const names = [];
		for (let count = 0; count < 4; count += 1) {
			const taken = await page(next);
			names.push(...taken.names);
			next = taken.next;
			clock.advance(limits.pageTokenMs - 1);
		}
		expect(names).toEqual(["a", "b", "c", "d"]);
		expect(next).toBe("");
	});

	it("are bounded in number: the one that was used least recently gives way", async () => {
		const oldest = await page();
		const used = await page();
		for (let count = 2; count < limits.pagedLists; count += 1) {
			await page();
		}
		const kept = await page(used.next);
		expect(kept.names).toEqual(["b"]);
		// One more than there is room for.
		await page();
		await expectRefusal(page(oldest.next), Code.OutOfRange, runOut);
		expect((await page(kept.next)).names).toEqual(["c"]);
	});

	it("answer a page with no token where nothing follows, though the last page was full", async () => {
		const { resources, nextPageToken } = await t.client.list({ ...request, pageSize: 4 });
		expect(resources).toHaveLength(4);
		expect(nextPageToken).toBe("");
	});

	it("refuse a token of another list", async () => {
		const { next } = await page();
		await expectRefusal(
			t.client.list({ ...request, type: Album.type, pageToken: next }),
			Code.InvalidArgument,
			"page_token invalid: is of another list",
		);
	});

	it.each(["x", "x.y", ".", `${"x".repeat(26)}.W10`])("refuse the token %s", async (token) => {
		await expectRefusal(
			page(token),
			Code.InvalidArgument,
			"page_token invalid: is not one that a list has answered",
		);
	});
});

import type { ID, Resource } from "@plinth/proto";
import { idOf } from "@plinth/resource";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Artist, album, artist } from "../demo.fixture.ts";
import { connections, startService, type TestService } from "../service.fixture.ts";

describe.each(connections)("what a resource owns, in pages (%s)", (connection) => {
	let t: TestService;
	let owner: ID;
	beforeEach(async () => {
		t = await startService(connection);
		const { resource } = await t.client.write({ resource: artist("miles") });
		owner = resource?.id ?? idOf(Artist, "");
	});
	afterEach(() => t[Symbol.asyncDispose]());

	async function own(count: number): Promise<void> {
		for (let number = 0; number < count; number += 1) {
			const resource = number % 3 === 0 ? artist(`a${number}`) : album(`b${number}`);
			await t.client.write({ resource: { ...resource, owner } });
		}
	}

	async function pages(pageSize: number): Promise<readonly (readonly Resource[])[]> {
		const read: Resource[][] = [];
		let pageToken = "";
		do {
			const page = await t.client.listByOwner({ owner, pageSize, pageToken });
			read.push(page.resources);
			pageToken = page.nextPageToken;
		} while (pageToken !== "");
		return read;
	}

	it.each([3, 4, 130])("is the same as in one response, for %i resources", async (count) => {
		await own(count);
		const whole = await t.client.listByOwner({ owner });
		expect(new Set(whole.resources.map(nameOf)).size).toBe(count);
		expect(whole.nextPageToken).toBe("");
		for (const pageSize of [1, 2, 3, 50, 1_000]) {
			const read = await pages(pageSize);
			expect(read.flat().map(nameOf)).toEqual(whole.resources.map(nameOf));
			expect(read).toHaveLength(Math.ceil(count / pageSize));
		}
	});

	it("continues after a resource that was deleted, and begins with none", async () => {
		expect(await pages(10)).toEqual([[]]);
		await own(10);
		const whole = await t.client.listByOwner({ owner });
		const first = await t.client.listByOwner({ owner, pageSize: 4 });
		for (const { id } of first.resources) {
			await t.client.delete(id === undefined ? {} : { id });
		}
		const { nextPageToken: pageToken } = first;
		const rest = await t.client.listByOwner({ owner, pageSize: 1_000, pageToken });
		expect(rest.resources.map(nameOf)).toEqual(whole.resources.slice(4).map(nameOf));
		expect(rest.nextPageToken).toBe("");
		// For ever: nothing is held for a token.
		const again = await t.client.listByOwner({ owner, pageSize: 1_000, pageToken });
		expect(again.resources.map(nameOf)).toEqual(rest.resources.map(nameOf));
	});
});

function nameOf({ id }: Resource): string {
	return `${id?.type?.kind} ${id?.name}`;
}

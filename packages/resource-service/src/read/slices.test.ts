import { idOf, newUlid } from "@plinth/resource";
import { type Runtime, systemRuntime } from "@plinth/runtime";
import { expect, it } from "vitest";
import { Artist, album, artist } from "../demo.fixture.ts";
import { startService } from "../service.fixture.ts";
import { sliceItems } from "./slices.ts";

it("reads of many resources let other input have its turn, and short ones do not wait", async () => {
	let turns = 0;
	const { scheduler } = systemRuntime;
	const runtime: Runtime = {
		...systemRuntime,
		scheduler: {
			schedule: (task) => scheduler.schedule(task),
			turn() {
				turns += 1;
				return scheduler.turn();
			},
		},
	};
	await using t = await startService("in-process", { runtime });
	const owner = { ...idOf(Artist, "owner"), uid: newUlid(runtime) };
	const resources = [{ ...artist("owner"), id: owner }];
	for (let number = 0; number < 3 * sliceItems; number += 1) {
		const name = String(number);
		const owned = { ...album(name, { owner }), owner };
		resources.push({ ...owned, id: { ...(owned.id ?? owner), uid: newUlid(runtime) } });
	}
	for (let at = 0; at < resources.length; at += 50) {
		const some = resources.slice(at, at + 50);
		await t.backend.commit(
			some.map((resource) => ({ op: "put", resource, expectedVersion: "" }) as const),
		);
	}
	const turnsOf = async (read: Promise<{ readonly resources: readonly unknown[] }>) => {
		const before = turns;
		const { length } = (await read).resources;
		return { length, turns: turns - before };
	};
	const type = resources[1]?.id?.type ?? Artist.type;
	const all = { type, tenancy: { partition: "*", namespace: "*" } };
	expect(await turnsOf(t.client.list(all))).toEqual({ length: 3 * sliceItems, turns: 2 });
	expect(await turnsOf(t.client.list({ ...all, pageSize: 100 }))).toEqual({
		length: 100,
		turns: 0,
	});
	expect(await turnsOf(t.client.list({ ...all, namePrefix: "12" }))).toMatchObject({ turns: 0 });
	expect(await turnsOf(t.client.listByOwner({ owner }))).toEqual({
		length: 3 * sliceItems,
		turns: 2,
	});
	expect(await turnsOf(t.client.listByOwner({ owner, pageSize: 100 }))).toEqual({
		length: 100,
		turns: 0,
	});
});

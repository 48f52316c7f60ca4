import { ConnectError } from "@connectrpc/connect";
import type { ID } from "@plinth/proto";
import { finalizersKey, idOf, Namespace, Partition, Tombstone } from "@plinth/resource";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Thing, thingType } from "../testdata/thing.ts";
import {
	all,
	isGone,
	type System,
	startSystem,
	writeNamespace,
	writePartition,
	writeThing,
} from "./system.fixture.ts";
import { emptiedCondition } from "./tenancy-deletion.ts";

describe("the deletion of tenancies", () => {
	let s: System;
	beforeEach(async () => {
		s = await startSystem();
	});
	afterEach(async () => {
		await s[Symbol.asyncDispose]();
		expect(s.errors).toEqual([]);
	});

	const names = async (type: typeof Thing | typeof Namespace | typeof Partition) =>
		(await all(s.client, type)).map(({ id }) => id?.name);

	it("removes an empty namespace at once", async () => {
		const id = await writeNamespace(s.client, "n");
		await s.client.delete({ id });
		await s.until(() => isGone(s.client, id), 1_000);
	});

	it("first empties a namespace, including owned resources and tombstones, and nothing else", async () => {
		const id = await writeNamespace(s.client, "n");
		const tenancy = { namespace: "n" };
		const owner = await writeThing(s.client, "owner", { tenancy });
		await writeThing(s.client, "owned", { tenancy, owner });
		await writeThing(s.client, "elsewhere");
		await s.client.delete({ id });
		await s.until(() => isGone(s.client, id));
		expect(await names(Thing)).toEqual(["elsewhere"]);
		const left = await all(s.client, Tombstone);
		expect(left.filter((tombstone) => tombstone.id?.tenancy?.namespace === "n")).toEqual([]);
	});

	it("waits for finalizers, and reports in its status what is left", async () => {
		const id = await writeNamespace(s.client, "n");
		const held = await writeThing(s.client, "held", {
			tenancy: { namespace: "n" },
			finalizers: "a",
		});
		await s.client.delete({ id });
		await s.clock.advanceAsync(60_000);
		const { resource: namespace } = await s.client.read({ id });
		const [condition] = namespace?.status["namespace-deletion"]?.conditions ?? [];
		expect(condition).toMatchObject({
			type: emptiedCondition,
			reason: "ResourcesLeft",
			message: "still there: 1 thing.v1.Thing",
		});
		const { resource } = await s.client.read({ id: held });
		if (resource === undefined) {
			throw new Error("the held resource does not exist");
		}
		const metadata = { ...resource.metadata, [finalizersKey]: "" };
		await s.client.write({ resource: { ...resource, metadata } });
		await s.until(() => isGone(s.client, id));
	});

	it("removes a partition with its namespaces, including the default one", async () => {
		const id = await writePartition(s.client, "p");
		await writeNamespace(s.client, "n", "p");
		await writeThing(s.client, "a", { tenancy: { partition: "p", namespace: "n" } });
		await writeThing(s.client, "b", { tenancy: { partition: "p" } });
		await s.client.delete({ id });
		await s.until(() => isGone(s.client, id));
		expect(await names(Thing)).toEqual([]);
		expect(await names(Namespace)).toEqual(["default"]);
		expect(await names(Partition)).toEqual(["default"]);
	});

	it("leaves nothing behind while clients keep writing into it", async () => {
		const id = await writeNamespace(s.client, "n");
		const tenancy = { namespace: "n" };
		let stop = false;
		let refused = 0;
		const writer = async (number: number) => {
			for (let round = 0; !stop; round += 1) {
				try {
					const owner = await writeThing(s.client, `w${number}-${round % 7}`, { tenancy });
					await writeThing(s.client, `o${number}-${round}`, { tenancy, owner });
				} catch (error) {
					refused += 1;
					if (!(error instanceof ConnectError)) {
						throw error;
					}
				}
				await new Promise((resolve) => setImmediate(resolve));
			}
		};
		const writers = [1, 2, 3, 4].map(writer);
		await s.clock.advanceAsync(100);
		await s.client.delete({ id });
		await s.until(() => isGone(s.client, id));
		stop = true;
		await Promise.all(writers);
		expect(refused).toBeGreaterThan(0);
		expect(await names(Thing)).toEqual([]);
		expect(idOf(Namespace, "n").name).toBe(id.name);
	});

	it("deletes what a namespace contains within two seconds, in a number of calls that is proportional to it", async () => {
		const callsFor = async (things: number) => {
			const id = await writeNamespace(s.client, "n");
			for (let number = 0; number < things; number += 1) {
				await writeThing(s.client, `thing-${number}`, { tenancy: { namespace: "n" } });
			}
			await s.clock.advanceAsync(1_000);
			s.calls.clear();
			await s.client.delete({ id });
			await s.until(() => isGone(s.client, id), 2_000);
			await s.until(async () => (await all(s.client, Tombstone)).length === 0, 500);
			return Object.fromEntries(s.calls);
		};
		// Two deletions and a list of owned resources for each thing; the rest for the namespace and its tombstone.
		expect(await callsFor(10)).toEqual({ list: 1, read: 1, delete: 21, listByOwner: 11, write: 1 });
		const more = await callsFor(1_000);
		expect(more).toMatchObject({ delete: 2_001, listByOwner: 1_001, write: 1 });
		expect((more.list ?? 0) + (more.read ?? 0)).toBeLessThanOrEqual(8);
	});

	it("lists each type once for each namespace, however long finalizers keep its resources", async () => {
		const types = Array.from({ length: 30 }, (_, number) => thingType(`Thing${number}`));
		await using many = await startSystem({ types });
		const { client, calls } = many;
		const namespaces = ["a", "b", "c", "d", "e"];
		const ids = await Promise.all(namespaces.map((name) => writeNamespace(client, name)));
		const held: ID[] = [];
		for (const namespace of namespaces) {
			for (const type of types) {
				const tenancy = { namespace };
				await writeThing(client, "free", { type, tenancy });
				held.push(await writeThing(client, "held", { type, tenancy, finalizers: "a" }));
			}
		}
		await many.clock.advanceAsync(1_000);
		calls.clear();
		await Promise.all(ids.map((id) => client.delete({ id })));
		await many.clock.advanceAsync(10 * 60_000);
		expect(calls.get("list")).toBe(namespaces.length * types.length);
		expect(calls.get("writeStatus")).toBe(namespaces.length);
		for (const id of held) {
			const { resource } = await client.read({ id });
			if (resource !== undefined) {
				const metadata = { ...resource.metadata, [finalizersKey]: "" };
				await client.write({ resource: { ...resource, metadata } });
			}
		}
		for (const id of ids) {
			await many.until(() => isGone(client, id), 2_000);
		}
		expect(calls.get("list")).toBe(namespaces.length * types.length);
		expect(many.errors).toEqual([]);
	});
});

import { ConnectError } from "@connectrpc/connect";
import { finalizersKey, idOf, Namespace, Partition, Tombstone } from "@plinth/resource";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Thing } from "../testdata/thing.ts";
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
});

import { create } from "@bufbuild/protobuf";
import { type ID, NamespaceSchema, type Resource } from "@plinth/proto";
import { idOf, Namespace, resourceOf, Tombstone } from "@plinth/resource";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Thing } from "../testdata/thing.ts";
import { ownedDeletedCondition, reaperName } from "./owner-deletion.ts";
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
import { unregisteredTypesReason } from "./unregistered-types.ts";

const everything = {
	type: Thing.type,
	tenancy: { partition: "*", namespace: "*" },
	namePrefix: "",
};

describe("with two servers, whose leader lacks a module of the other", () => {
	let leader: System;
	/** Registers things. */
	let writer: System;
	beforeEach(async () => {
		leader = await startSystem({ types: [] });
		writer = await startSystem({ joins: leader, isLeader: false });
	});
	afterEach(async () => {
		await writer[Symbol.asyncDispose]();
		await leader[Symbol.asyncDispose]();
		expect([...leader.errors, ...writer.errors]).toEqual([]);
	});

	const conditionsOf = (resource: Resource | undefined, key: string) =>
		resource?.status[key]?.conditions ?? [];

	describe("while the other one is down", () => {
		beforeEach(() => writer[Symbol.asyncDispose]());

		it("keeps a namespace, and reports in its status what it waits for and what to do", async () => {
			const id = await writeNamespace(leader.client, "n");
			await writeThing(writer.client, "left", { tenancy: { namespace: "n" } });
			await leader.client.delete({ id });
			await leader.until(async () => {
				const { resource } = await leader.client.read({ id });
				return conditionsOf(resource, "namespace-deletion").length > 0;
			}, 5_000);
			const { resource } = await leader.client.read({ id });
			expect(conditionsOf(resource, "namespace-deletion")).toMatchObject([
				{
					type: emptiedCondition,
					reason: unregisteredTypesReason,
					message:
						"still there: 1 thing.v1.Thing. No module of this server registers thing.v1.Thing. A server that registers a type deletes its resources: start one with the module, or restart this one with it",
				},
			]);
			// Nothing is written while nothing changes.
			await leader.clock.advanceAsync(10 * 60_000);
			expect((await leader.client.read({ id })).resource?.version).toBe(resource?.version);
			expect(leader.warnings).toEqual([]);
			await expect(
				leader.client.write({
					resource: resourceOf(Namespace, {
						id: idOf(Namespace, "n"),
						data: create(NamespaceSchema),
					}),
				}),
			).rejects.toThrow("only finalizers can be removed");
			expect((await leader.backend.list(everything)).resources).toHaveLength(1);
		});

		it("keeps a partition with resources of a namespace that no longer exists", async () => {
			const id = await writePartition(leader.client, "p");
			await writeThing(writer.client, "left", { tenancy: { partition: "p" } });
			const [thing] = (await leader.backend.list(everything)).resources;
			await leader.client.delete({ id });
			await leader.clock.advanceAsync(60_000);
			expect(await isGone(leader.client, id)).toBe(false);
			// Its namespace is removed first, as older servers did.
			const namespace = await leader.backend.read(idOf(Namespace, "default", { partition: "p" }));
			await leader.backend.commit([
				{ op: "delete", id: namespace.id as ID, expectedVersion: namespace.version },
			]);
			await leader.clock.advanceAsync(60_000);
			expect(await isGone(leader.client, id)).toBe(false);
			expect((await leader.backend.list(everything)).resources).toEqual([thing]);
			const again = await startSystem({ joins: leader, isLeader: false });
			await leader.until(() => isGone(leader.client, id));
			await again[Symbol.asyncDispose]();
			expect((await leader.backend.list(everything)).resources).toEqual([]);
		});

		it("keeps the tombstone of an owner, reports it once, and reaps the others", async () => {
			const owner = await writeNamespace(leader.client, "owner");
			await writeThing(writer.client, "owned", { owner });
			const other = await writeNamespace(leader.client, "other");
			await leader.client.delete({ id: owner });
			await leader.until(() => isGone(leader.client, owner));
			await leader.client.delete({ id: other });
			await leader.until(() => isGone(leader.client, other));
			await leader.until(async () => {
				const left = await all(leader.client, Tombstone);
				return left.length === 1 && left[0]?.id?.name.startsWith("tombstone-owner") === true;
			});
			const [tombstone] = await all(leader.client, Tombstone);
			expect(conditionsOf(tombstone, reaperName)).toMatchObject([
				{ type: ownedDeletedCondition, reason: unregisteredTypesReason },
			]);
			await leader.clock.advanceAsync(30 * 60_000);
			expect((await all(leader.client, Tombstone)).map(({ version }) => version)).toEqual([
				tombstone?.version,
			]);
			expect(leader.warnings).toEqual([
				"a deleted resource still owns resources of types that no module of this server registers ",
			]);
		});
	});

	it("empties a namespace through the other server", async () => {
		const id = await writeNamespace(leader.client, "n");
		await writeThing(writer.client, "left", { tenancy: { namespace: "n" } });
		await writeThing(writer.client, "elsewhere");
		await leader.client.delete({ id });
		await leader.until(() => isGone(leader.client, id), 2 * 60_000);
		const { resources } = await leader.backend.list(everything);
		expect(resources.map((resource) => resource.id?.name)).toEqual(["elsewhere"]);
	});

	it("deletes owned resources through the other server", async () => {
		const owner = await writeNamespace(leader.client, "owner");
		await writeThing(writer.client, "owned", { owner });
		await leader.client.delete({ id: owner });
		await leader.until(() => isGone(leader.client, owner));
		await leader.until(async () => (await all(leader.client, Tombstone)).length === 0, 4 * 60_000);
		expect((await leader.backend.list(everything)).resources).toEqual([]);
	});
});

import { finalizersKey, Tombstone } from "@plinth/resource";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Thing } from "../testdata/thing.ts";
import { all, type System, startSystem, writeThing } from "./system.fixture.ts";

describe("the reaper", () => {
	let s: System;
	beforeEach(async () => {
		s = await startSystem();
	});
	afterEach(async () => {
		await s[Symbol.asyncDispose]();
		expect(s.errors).toEqual([]);
	});

	const things = async () => (await all(s.client, Thing)).map(({ id }) => id?.name);
	const tombstones = () => all(s.client, Tombstone);

	it("deletes the resources that a deleted resource owned, level by level, and nothing else", async () => {
		const root = await writeThing(s.client, "root");
		const child = await writeThing(s.client, "child", { owner: root });
		await writeThing(s.client, "grandchild", { owner: child });
		await writeThing(s.client, "stranger");
		await s.client.delete({ id: root });
		await s.until(async () => (await things()).length === 1, 1_000);
		expect(await things()).toEqual(["stranger"]);
		await s.until(async () => (await tombstones()).length === 0);
	});

	it("does not delete resources that a later incarnation of the name owns", async () => {
		const first = await writeThing(s.client, "root");
		await s.client.delete({ id: first });
		const second = await writeThing(s.client, "root");
		await writeThing(s.client, "child", { owner: second });
		await s.until(async () => (await tombstones()).length === 0);
		expect(await things()).toEqual(["child", "root"]);
	});

	it("deletes a tombstone at once, with one list and no status", async () => {
		const root = await writeThing(s.client, "root");
		for (let number = 0; number < 20; number += 1) {
			await writeThing(s.client, `child-${number}`, { owner: root });
		}
		await s.clock.advanceAsync(1_000);
		s.calls.clear();
		await s.client.delete({ id: root });
		await s.until(async () => (await tombstones()).length === 0, 1_000);
		expect(await things()).toEqual([]);
		// 21 tombstones: 20 deletions of children, and 21 of tombstones.
		expect(Object.fromEntries(s.calls)).toEqual({ listByOwner: 21, delete: 41 });
	});

	it("reads what a resource owned in pages", async () => {
		const root = await writeThing(s.client, "root");
		for (let number = 0; number < 1_200; number += 1) {
			const finalizers = number % 3 === 0 ? "a" : "";
			await writeThing(s.client, `child-${number}`, { owner: root, finalizers });
		}
		await s.clock.advanceAsync(1_000);
		s.calls.clear();
		await s.client.delete({ id: root });
		await s.until(async () => (await tombstones()).length === 0, 1_000);
		// Three pages of the owner, and one for each of the 800 that had no finalizers.
		expect(Object.fromEntries(s.calls)).toEqual({ listByOwner: 803, delete: 2_001 });
		expect(await things()).toHaveLength(400);
	});

	it("completes deletions after a restart", async () => {
		const root = await writeThing(s.client, "root");
		for (let number = 0; number < 50; number += 1) {
			await writeThing(s.client, `child-${number}`, { owner: root });
		}
		await s.client.delete({ id: root });
		await s.restart();
		await s.until(async () => (await tombstones()).length === 0, 1_000);
		expect(await things()).toEqual([]);
	});

	it("does not wait for resources with finalizers", async () => {
		const root = await writeThing(s.client, "root");
		const child = await writeThing(s.client, "child", { owner: root, finalizers: "a" });
		await writeThing(s.client, "grandchild", { owner: child });
		await s.client.delete({ id: root });
		await s.until(async () => (await tombstones()).length === 0, 1_000);
		expect(await things()).toEqual(["child", "grandchild"]);
		const { resource } = await s.client.read({ id: child });
		if (resource === undefined) {
			throw new Error("the child does not exist");
		}
		const metadata = { ...resource.metadata, [finalizersKey]: "" };
		await s.client.write({ resource: { ...resource, metadata } });
		await s.until(async () => (await things()).length === 0, 1_000);
	});
});

import type { ReconcileContext } from "@plinth/controller";
import type { ID } from "@plinth/proto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Thing } from "../testdata/thing.ts";
import { deleteContents } from "./delete-contents.ts";
import { all, type System, startSystem, writeNamespace, writeThing } from "./system.fixture.ts";

describe("deleting the contents of a namespace", () => {
	let s: System;
	beforeEach(async () => {
		s = await startSystem();
	});
	afterEach(() => s[Symbol.asyncDispose]());

	const tenancy = { partition: "default", namespace: "n" };

	async function isListed(id: ID): Promise<boolean> {
		const { resources } = await s.client.list({ type: id.type ?? {}, tenancy: {} });
		return resources.some((resource) => resource.id?.name === id.name);
	}

	/** The part of a context that `deleteContents` uses. */
	const context = () => ({ client: s.client }) as ReconcileContext;

	it("does not delete resources of the next tenant of the name", async () => {
		const former = await writeNamespace(s.client, "n");
		await s.client.delete({ id: former });
		await s.until(async () => !(await isListed(former)));
		const next = await writeNamespace(s.client, "n");
		await writeThing(s.client, "theirs", { tenancy });
		const nothing = { complete: new Set(), failure: undefined };
		expect(await deleteContents(context(), [Thing], tenancy, former)).toEqual(nothing);
		// Nor of an unmarked namespace.
		expect(await deleteContents(context(), [Thing], tenancy, next)).toEqual(nothing);
		expect(await all(s.client, Thing)).toHaveLength(1);
	});
});

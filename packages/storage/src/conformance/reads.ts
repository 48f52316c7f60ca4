import assert from "node:assert/strict";
import { typeOf } from "@plinth/resource";
import { GroupVersionMismatch, NotFound, StorageUnavailable } from "../errors.ts";
import type { Behavior } from "./behavior.ts";
import { albumType, artistType, idFor, resource, store, textOf } from "./test-resources.ts";

const v1 = typeOf({ ...artistType, groupVersion: "v1" });

export const readBehaviors: readonly Behavior[] = [
	{
		name: "reads by name and uid what was stored",
		async run({ backend }) {
			await store(backend, resource("miles", { text: "trumpet" }));
			assert.equal(textOf(await backend.read(idFor("miles"))), "trumpet");
		},
	},
	{
		name: "treats an empty uid as any uid",
		async run({ backend }) {
			await store(backend, resource("miles", { uid: "one" }));
			const found = await backend.read(idFor("miles", { uid: "" }));
			assert.equal(found.id?.uid, "one");
		},
	},
	{
		name: "looks up at once what an eventually consistent lookup returns",
		async run({ backend }) {
			if (backend.lookupNow === undefined) {
				return;
			}
			const { version } = await store(backend, resource("miles"));
			assert.equal(backend.lookupNow?.(idFor("miles")), await backend.lookup(idFor("miles")));
			await backend.commit([{ op: "delete", id: idFor("miles"), expectedVersion: version }]);
			assert.equal(backend.lookupNow?.(idFor("miles")), undefined);
			await backend.close();
			assert.throws(() => backend.lookupNow?.(idFor("miles")), StorageUnavailable);
		},
	},
	{
		name: "counts what is stored of each type, group versions apart",
		async run({ backend }) {
			await store(backend, resource("miles"));
			await store(backend, resource("john"));
			await store(backend, resource("ella", { type: v1 }));
			await store(backend, resource("blue", { type: albumType }));
			const { version } = await backend.read(idFor("john"));
			await backend.commit([{ op: "delete", id: idFor("john"), expectedVersion: version }]);
			assert.deepEqual(Object.fromEntries(await backend.countByType()), {
				"demo.v2.Artist": 1,
				"demo.v1.Artist": 1,
				"demo.v2.Album": 1,
			});
		},
	},
	{
		name: "finds nothing under a name that is not there",
		async run({ backend }) {
			await store(backend, resource("miles"));
			await assert.rejects(backend.read(idFor("mile")), NotFound);
			await assert.rejects(backend.read(idFor("miles", { namespace: "other" })), NotFound);
			await assert.rejects(backend.read(idFor("miles", { partition: "other" })), NotFound);
			await assert.rejects(backend.read(idFor("miles", { type: albumType })), NotFound);
		},
	},
	{
		name: "looks up what is stored under a name, whatever its uid and group version",
		async run({ backend }) {
			const stored = await store(backend, resource("miles", { uid: "one" }));
			for (const id of [idFor("miles"), idFor("miles", { uid: "two", type: v1 })]) {
				assert.equal(await backend.lookup(id), stored);
				assert.equal(await backend.lookup(id, { consistency: "strong" }), stored);
			}
			assert.equal(await backend.lookup(idFor("mile")), undefined);
			assert.equal(await backend.lookup(idFor("miles", { namespace: "other" })), undefined);
			assert.equal(await backend.lookup(idFor("miles", { type: albumType })), undefined);
		},
	},
	{
		name: "finds nothing under another uid",
		async run({ backend }) {
			await store(backend, resource("miles", { uid: "one" }));
			await assert.rejects(backend.read(idFor("miles", { uid: "two" })), NotFound);
		},
	},
	{
		name: "reports the stored group version when another one is requested",
		async run({ backend }) {
			const stored = await store(backend, resource("miles"));
			await assert.rejects(backend.read(idFor("miles", { type: v1 })), (error) => {
				assert.ok(error instanceof GroupVersionMismatch);
				assert.equal(error.requested.groupVersion, "v1");
				assert.equal(error.stored, stored);
				return true;
			});
		},
	},
	{
		name: "finds nothing under another uid, whatever the group version",
		async run({ backend }) {
			await store(backend, resource("miles", { uid: "one" }));
			await assert.rejects(backend.read(idFor("miles", { uid: "two", type: v1 })), NotFound);
		},
	},
	{
		name: "keeps every field",
		async run({ backend }) {
			const owner = idFor("owner", { type: albumType });
			const given = resource("miles", { text: "trumpet", owner });
			given.metadata["k/é"] = "välue";
			const stored = await store(backend, given);
			assert.deepEqual({ ...stored, version: "" }, { ...given, version: "" });
		},
	},
	{
		name: "returns the same object as the commit, each time",
		async run({ backend }) {
			const stored = await store(backend, resource("miles"));
			assert.equal(await backend.read(idFor("miles")), stored);
			assert.equal(await backend.read(idFor("miles"), { consistency: "strong" }), stored);
		},
	},
	{
		name: "does not change the version of its argument",
		async run({ backend }) {
			const given = resource("miles");
			given.version = "as given";
			const stored = await store(backend, given);
			assert.equal(given.version, "as given");
			assert.match(stored.version, /^[1-9]\d*$/);
		},
	},
	{
		name: "freezes returned resources deeply",
		async run({ backend }) {
			const stored = await store(backend, resource("miles"));
			for (const part of [stored, stored.id, stored.id?.tenancy, stored.metadata, stored.data]) {
				assert.ok(Object.isFrozen(part));
			}
		},
	},
	{
		name: "reads what has been committed, whatever the consistency",
		async run({ backend }) {
			for (let version = "", count = 0; count < 20; count++) {
				const text = String(count);
				version = (await store(backend, resource("miles", { text }), version)).version;
				const consistency = count % 2 === 0 ? "eventual" : "strong";
				assert.equal(textOf(await backend.read(idFor("miles"), { consistency })), text);
			}
		},
	},
];

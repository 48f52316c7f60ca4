import assert from "node:assert/strict";
import type { Behavior } from "./behavior.ts";
import { albumType, idFor, nameOf, remove, resource, store } from "./test-resources.ts";

const owner = idFor("owner", { uid: "one" });

export const ownerBehaviors: readonly Behavior[] = [
	{
		name: "lists what an incarnation owns, of all types and tenancies, in order",
		async run({ backend }) {
			await store(backend, resource("b", { owner }));
			await store(backend, resource("a", { owner, namespace: "other" }));
			await store(backend, resource("c", { owner, type: albumType }));
			await store(backend, resource("d"));
			for (const consistency of ["eventual", "strong"] as const) {
				const owned = await backend.listByOwner(owner, { consistency });
				assert.deepEqual(owned.map(nameOf), ["c", "b", "a"]);
			}
		},
	},
	{
		name: "lists nothing for another incarnation, another name, or none",
		async run({ backend }) {
			await store(backend, resource("a", { owner }));
			for (const other of [
				idFor("owner", { uid: "two" }),
				idFor("owner", { uid: "" }),
				idFor("owner2", { uid: "one" }),
				idFor("owner", { uid: "one", namespace: "other" }),
				idFor("owner", { uid: "one", type: albumType }),
			]) {
				assert.deepEqual(await backend.listByOwner(other), []);
			}
		},
	},
	{
		name: "lists no owner by a name without a uid",
		async run({ backend }) {
			await store(backend, resource("a", { owner: idFor("owner", { uid: "" }) }));
			assert.deepEqual(await backend.listByOwner(idFor("owner", { uid: "" })), []);
		},
	},
	{
		name: "lists what is owned as it is now",
		async run({ backend }) {
			const first = await store(backend, resource("a", { owner }));
			const second = await store(backend, resource("a", { owner, text: "2" }), first.version);
			const owned = await backend.listByOwner(owner);
			assert.equal(owned.length, 1);
			assert.equal(owned[0], second);
			await backend.commit([remove(second)]);
			assert.deepEqual(await backend.listByOwner(owner), []);
		},
	},
	{
		name: "follows a change of owners",
		async run({ backend }) {
			const next = idFor("owner", { uid: "two" });
			const first = await store(backend, resource("a", { owner }));
			const second = await store(backend, resource("a", { owner: next }), first.version);
			assert.deepEqual(await backend.listByOwner(owner), []);
			assert.deepEqual((await backend.listByOwner(next)).map(nameOf), ["a"]);
			await store(backend, resource("a"), second.version);
			assert.deepEqual(await backend.listByOwner(next), []);
		},
	},
];

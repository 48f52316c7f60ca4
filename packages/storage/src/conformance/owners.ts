import assert from "node:assert/strict";
import type { Resource } from "@plinth/proto";
import type { Behavior } from "./behavior.ts";
import { albumType, artistType, idFor, nameOf, remove, resource, store } from "./test-resources.ts";

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
		name: "lists what is owned in parts, a few as well as many",
		async run({ backend }) {
			for (const count of [5, 150]) {
				const many = idFor("owner", { uid: `of ${count}` });
				for (let number = 0; number < count; number += 1) {
					const type = number % 3 === 0 ? albumType : artistType;
					const namespace = number % 2 === 0 ? "one" : "two";
					const name = `${count}-${number}`;
					await store(backend, resource(name, { owner: many, type, namespace }));
				}
				const all = await backend.listByOwner(many);
				assert.equal(all.length, count);
				for (const limit of [1, 2, 7, count, count + 1]) {
					const parts: Resource[] = [];
					let part: readonly Resource[];
					do {
						part = await backend.listByOwner(many, { after: parts.at(-1)?.id, limit });
						assert.ok(part.length <= limit);
						parts.push(...part);
					} while (part.length === limit);
					assert.deepEqual(parts, all);
				}
				// The name of the last part may be deleted.
				const [first, second, third] = all;
				assert.ok(first && second && third);
				await backend.commit([remove(second)]);
				const rest = await backend.listByOwner(many, { after: second.id, limit: 1 });
				assert.deepEqual(rest, [third]);
			}
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

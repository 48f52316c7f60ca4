import assert from "node:assert/strict";
import { typeOf } from "@plinth/resource";
import { CasFailure, NotFound, WrongUid } from "../errors.ts";
import type { Mutation } from "../mutation.ts";
import type { Behavior } from "./behavior.ts";
import { artistType, idFor, idOf, put, remove, resource, store, textOf } from "./test-resources.ts";

export const compareAndSwapBehaviors: readonly Behavior[] = [
	{
		name: "creates a resource if none is expected and none exists",
		async run({ backend }) {
			const { version, resources } = await backend.commit([put(resource("miles"))]);
			assert.equal(resources[0]?.version, version);
		},
	},
	{
		name: "refuses to create a resource that exists, with the same uid or another",
		async run({ backend }) {
			const stored = await store(backend, resource("miles"));
			await assert.rejects(backend.commit([put(resource("miles"))]), CasFailure);
			await assert.rejects(backend.commit([put(resource("miles", { uid: "two" }))]), CasFailure);
			assert.equal(await backend.read(idFor("miles")), stored);
		},
	},
	{
		name: "replaces the expected version",
		async run({ backend }) {
			const first = await store(backend, resource("miles", { text: "1" }));
			const second = await store(backend, resource("miles", { text: "2" }), first.version);
			assert.equal(await backend.read(idFor("miles")), second);
			assert.equal(textOf(second), "2");
			assert.equal(textOf(first), "1");
		},
	},
	{
		name: "refuses a stale or unknown version",
		async run({ backend }) {
			const first = await store(backend, resource("miles"));
			const second = await store(backend, resource("miles"), first.version);
			for (const version of [first.version, "999999", "nonsense", `0${second.version}`]) {
				await assert.rejects(backend.commit([put(resource("miles"), version)]), CasFailure);
			}
			assert.equal(await backend.read(idFor("miles")), second);
		},
	},
	{
		name: "decides a commit again on the newest resource, or fails it, where the caller can decide again",
		async run({ backend }) {
			const first = await store(backend, resource("miles", { text: "1" }));
			const second = await store(backend, resource("miles", { text: "2" }), first.version);
			const seen: unknown[] = [];
			const commit = backend.commit([put(resource("miles", { text: "3" }), first.version)], {
				rebase: (stored) => {
					seen.push(stored);
					return [put(resource("miles", { text: "4" }), stored?.version)];
				},
			});
			const outcome = await commit.catch((failure: unknown) => failure);
			if (outcome instanceof CasFailure) {
				assert.equal(await backend.read(idFor("miles")), second);
			} else {
				assert.equal(seen.at(-1), second);
				assert.equal(textOf(await backend.read(idFor("miles"))), "4");
			}
		},
	},
	{
		name: "does not decide a commit again whose other mutations fail",
		async run({ backend }) {
			const stored = await store(backend, resource("miles"));
			const absent: Mutation = { op: "assert", id: idFor("john") };
			const rebase = () => assert.fail("must not be called");
			const mutations = [put(resource("miles"), stored.version), absent];
			await assert.rejects(backend.commit(mutations, { rebase }), CasFailure);
			assert.equal(await backend.read(idFor("miles")), stored);
		},
	},
	{
		name: "refuses to replace a missing resource",
		async run({ backend }) {
			await assert.rejects(backend.commit([put(resource("miles"), "1")]), CasFailure);
			await assert.rejects(backend.read(idFor("miles")), NotFound);
		},
	},
	{
		name: "refuses to change a uid, whatever version is expected",
		async run({ backend }) {
			const stored = await store(backend, resource("miles", { uid: "one" }));
			const other = resource("miles", { uid: "two" });
			await assert.rejects(backend.commit([put(other, stored.version)]), WrongUid);
			await assert.rejects(backend.commit([put(other, "999999")]), WrongUid);
			assert.equal(await backend.read(idFor("miles", { uid: "" })), stored);
		},
	},
	{
		name: "stores another group version over the same name",
		async run({ backend }) {
			const first = await store(backend, resource("miles"));
			const v3 = typeOf({ ...artistType, groupVersion: "v3" });
			const second = await store(backend, resource("miles", { type: v3 }), first.version);
			assert.equal(await backend.read(idFor("miles", { type: v3 })), second);
		},
	},
	{
		name: "gives each commit a greater version",
		async run({ backend }) {
			let last = 0;
			for (let count = 0; count < 10; count++) {
				const { version } = await store(backend, resource(`artist-${count}`));
				assert.ok(Number(version) > last);
				last = Number(version);
			}
		},
	},
	{
		name: "deletes the expected version",
		async run({ backend }) {
			const stored = await store(backend, resource("miles"));
			const { version, resources } = await backend.commit([remove(stored)]);
			assert.ok(Number(version) > Number(stored.version));
			assert.deepEqual(resources, [undefined]);
			await assert.rejects(backend.read(idFor("miles")), NotFound);
		},
	},
	{
		name: "deletes a resource of any uid if none is given",
		async run({ backend }) {
			const { version } = await store(backend, resource("miles", { uid: "one" }));
			const id = idFor("miles", { uid: "" });
			await backend.commit([{ op: "delete", id, expectedVersion: version }]);
			await assert.rejects(backend.read(id), NotFound);
		},
	},
	{
		name: "refuses to delete a resource at another version than expected, or one that is expected to be missing",
		async run({ backend }) {
			const stored = await store(backend, resource("miles"));
			for (const expectedVersion of ["", "999999"]) {
				await assert.rejects(
					backend.commit([{ op: "delete", id: idOf(stored), expectedVersion }]),
					CasFailure,
				);
			}
			assert.equal(await backend.read(idFor("miles")), stored);
		},
	},
	{
		name: "ignores the deletion of a missing resource",
		async run({ backend }) {
			for (const expectedVersion of ["", "1"]) {
				assert.deepEqual(
					await backend.commit([{ op: "delete", id: idFor("miles"), expectedVersion }]),
					{ version: "", resources: [undefined] },
				);
			}
		},
	},
	{
		name: "ignores the deletion of another uid as the only mutation of a commit",
		async run({ backend }) {
			const stored = await store(backend, resource("miles", { uid: "one" }));
			const id = idFor("miles", { uid: "two" });
			for (const expectedVersion of ["", stored.version, "999999"]) {
				const { version } = await backend.commit([{ op: "delete", id, expectedVersion }]);
				assert.equal(version, "");
			}
			assert.equal(await backend.read(idFor("miles", { uid: "one" })), stored);
		},
	},
	{
		name: "re-creates a deleted resource with another uid",
		async run({ backend }) {
			const first = await store(backend, resource("miles", { uid: "one" }));
			const deletion = await backend.commit([remove(first)]);
			const second = await store(backend, resource("miles", { uid: "two" }));
			assert.ok(Number(second.version) > Number(deletion.version));
			await assert.rejects(backend.read(idFor("miles", { uid: "one" })), NotFound);
		},
	},
];

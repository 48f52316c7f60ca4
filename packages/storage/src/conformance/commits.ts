import assert from "node:assert/strict";
import { CasFailure, WrongUid } from "../errors.ts";
import type { Mutation } from "../mutation.ts";
import type { Behavior } from "./behavior.ts";
import {
	albumType,
	describeEvent,
	idFor,
	idOf,
	names,
	put,
	query,
	remove,
	resource,
	store,
	WatchReader,
} from "./test-resources.ts";

/** Checks that an error is of that class and lists those mutations. */
function failsAt(kind: typeof CasFailure | typeof WrongUid, mutations: readonly number[]) {
	return (error: unknown) => {
		assert.ok(error instanceof kind, String(error));
		assert.deepEqual(error.mutations, mutations);
		return true;
	};
}

export const commitBehaviors: readonly Behavior[] = [
	{
		name: "applies all mutations at one version",
		async run({ backend }) {
			const old = await store(backend, resource("old"));
			const { version, resources } = await backend.commit([
				put(resource("a")),
				remove(old),
				put(resource("b", { type: albumType })),
			]);
			assert.deepEqual(
				resources.map((each) => each?.version),
				[version, undefined, version],
			);
			assert.deepEqual(await names(backend), ["a"]);
			assert.deepEqual(await names(backend, query({ type: albumType })), ["b"]);
		},
	},
	{
		name: "applies no mutation if one fails, and lists all that failed",
		async run({ backend }) {
			const stored = await store(backend, resource("there"));
			const mutations = [put(resource("a")), put(resource("there")), put(resource("b"), "5")];
			await assert.rejects(backend.commit(mutations), failsAt(CasFailure, [1, 2]));
			assert.deepEqual(await names(backend), ["there"]);
			assert.equal((await backend.list(query())).version, stored.version);
		},
	},
	{
		name: "fails as WrongUid if versions and uids are wrong",
		async run({ backend }) {
			const stored = await store(backend, resource("there"));
			const other = resource("there", { uid: "other" });
			const mutations = [put(resource("a"), "5"), put(other, stored.version)];
			await assert.rejects(backend.commit(mutations), failsAt(WrongUid, [1]));
		},
	},
	{
		name: "fails to delete another uid among other mutations",
		async run({ backend }) {
			const { version } = await store(backend, resource("there"));
			const id = idFor("there", { uid: "other" });
			await assert.rejects(
				backend.commit([put(resource("a")), { op: "delete", id, expectedVersion: version }]),
				failsAt(WrongUid, [1]),
			);
			assert.deepEqual(await names(backend), ["there"]);
		},
	},
	{
		name: "ignores the deletion of a missing resource among other mutations",
		async run({ backend }) {
			await backend.commit([
				{ op: "delete", id: idFor("missing"), expectedVersion: "7" },
				put(resource("a")),
			]);
			assert.deepEqual(await names(backend), ["a"]);
		},
	},
	{
		name: "checks asserts: of a version, a uid, presence, absence",
		async run({ backend }) {
			const { version } = await store(backend, resource("there", { uid: "one" }));
			const there = idFor("there", { uid: "" });
			const missing = idFor("missing", { uid: "" });
			const holding: readonly Mutation[] = [
				{ op: "assert", id: there },
				{ op: "assert", id: idFor("there", { uid: "one" }) },
				{ op: "assert", id: there, expectedVersion: version },
				{ op: "assert", id: there, uid: "one" },
				{ op: "assert", id: there, uid: "one", expectedVersion: version },
				{ op: "assert", id: missing, expectedVersion: "" },
			];
			for (const [index, assertion] of holding.entries()) {
				await backend.commit([assertion, put(resource(`holds-${index}`))]);
			}
			const failing: readonly (readonly [Mutation, typeof CasFailure | typeof WrongUid])[] = [
				[{ op: "assert", id: missing }, CasFailure],
				[{ op: "assert", id: there, expectedVersion: "" }, CasFailure],
				[{ op: "assert", id: there, expectedVersion: "999999" }, CasFailure],
				[{ op: "assert", id: there, uid: "one", expectedVersion: "999999" }, CasFailure],
				[{ op: "assert", id: missing, expectedVersion: version }, CasFailure],
				[{ op: "assert", id: missing, uid: "one" }, CasFailure],
				[{ op: "assert", id: there, uid: "two" }, WrongUid],
				[{ op: "assert", id: idFor("there", { uid: "two" }) }, WrongUid],
				[{ op: "assert", id: there, uid: "two", expectedVersion: version }, WrongUid],
			];
			for (const [assertion, kind] of failing) {
				await assert.rejects(
					backend.commit([put(resource("never")), assertion]),
					failsAt(kind, [1]),
				);
			}
			assert.equal((await names(backend, query({ prefix: "never" }))).length, 0);
		},
	},
	{
		name: "returns no version if nothing changes",
		async run({ backend }) {
			const { version } = await store(backend, resource("there"));
			const id = idFor("there");
			assert.equal((await backend.commit([])).version, "");
			assert.deepEqual(await backend.commit([{ op: "assert", id }]), {
				version: "",
				resources: [undefined],
			});
			assert.equal(await backend.catchUp(new AbortController().signal), version);
		},
	},
	{
		name: "checks asserts on resources that the commit writes against the state before it",
		async run({ backend }) {
			const id = idFor("a");
			await backend.commit([put(resource("a")), { op: "assert", id, expectedVersion: "" }]);
			await assert.rejects(
				backend.commit([put(resource("b")), { op: "assert", id: idFor("b") }]),
				CasFailure,
			);
		},
	},
	{
		name: "throws a TypeError for two writes of one name in a commit",
		async run({ backend }) {
			await assert.rejects(backend.commit([put(resource("a")), put(resource("a"))]), TypeError);
			const stored = await store(backend, resource("a"));
			await assert.rejects(
				backend.commit([put(resource("a"), stored.version), remove(stored)]),
				TypeError,
			);
			assert.equal(await backend.read(idFor("a")), stored);
		},
	},
	{
		name: "sends the events of a commit in the order of its mutations",
		async run({ backend }) {
			const old = await store(backend, resource("old"));
			const watch = new WatchReader(backend);
			await watch.snapshot();
			const { version } = await backend.commit([
				put(resource("z")),
				remove(old),
				put(resource("a")),
			]);
			const events = await watch.take(3);
			assert.deepEqual(events.map(describeEvent), [
				`upsert z@${version}`,
				"delete old",
				`upsert a@${version}`,
			]);
			watch.abort();
		},
	},
	{
		name: "sends no event for a failed commit",
		async run({ backend }) {
			const watch = new WatchReader(backend);
			await watch.snapshot();
			await assert.rejects(
				backend.commit([put(resource("a")), put(resource("b"), "5")]),
				CasFailure,
			);
			const { version } = await store(backend, resource("c"));
			assert.deepEqual((await watch.take(1)).map(describeEvent), [`upsert c@${version}`]);
			watch.abort();
		},
	},
	{
		name: "checks a dry run in full and changes nothing",
		async run({ backend }) {
			const stored = await store(backend, resource("there"));
			const watch = new WatchReader(backend);
			await watch.snapshot();
			const dry = await backend.commit([put(resource("a", { text: "new" }))], { dryRun: true });
			assert.equal(dry.version, stored.version);
			assert.equal(dry.resources[0]?.id?.name, "a");
			await backend.commit([remove(stored)], { dryRun: true });
			await assert.rejects(
				backend.commit([put(resource("there"))], { dryRun: true }),
				failsAt(CasFailure, [0]),
			);
			assert.deepEqual(await names(backend), ["there"]);
			const { version } = await store(backend, resource("b"));
			assert.deepEqual((await watch.take(1)).map(describeEvent), [`upsert b@${version}`]);
			watch.abort();
		},
	},
	{
		name: "lets only one of two commits succeed if each writes what the other asserts",
		async run({ backend }) {
			for (let round = 0; round < 30; round++) {
				const doctors = await Promise.all(
					["ann", "bob"].map((name) => store(backend, resource(`${name}-${round}`))),
				);
				const leave = (own: number) => {
					const [mine, other] = [doctors[own], doctors[1 - own]];
					assert.ok(mine && other);
					const asserted = { id: idOf(other), expectedVersion: other.version };
					return backend.commit([remove(mine), { op: "assert", ...asserted }]);
				};
				const outcomes = await Promise.allSettled([leave(0), leave(1)]);
				const statuses = outcomes.map((outcome) => outcome.status).sort();
				assert.deepEqual(statuses, ["fulfilled", "rejected"]);
			}
			assert.equal((await names(backend)).length, 30);
		},
	},
	{
		name: "lets only one of two commits succeed if each creates what the other asserts to be missing",
		async run({ backend }) {
			for (let round = 0; round < 30; round++) {
				const create = (own: string, other: string) =>
					backend.commit([
						put(resource(`${own}-${round}`)),
						{ op: "assert", id: idFor(`${other}-${round}`), expectedVersion: "" },
					]);
				const outcomes = await Promise.allSettled([create("a", "b"), create("b", "a")]);
				assert.equal(outcomes.filter(({ status }) => status === "fulfilled").length, 1);
			}
		},
	},
];

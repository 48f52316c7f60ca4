import assert from "node:assert/strict";
import type { Resource } from "@plinth/proto";
import type { Behavior } from "./behavior.ts";
import { allQueries, fill } from "./lists.ts";
import {
	albumType,
	artistType,
	idFor,
	idOf,
	nameOf,
	query,
	remove,
	resource,
	store,
} from "./test-resources.ts";

export const snapshotBehaviors: readonly Behavior[] = [
	{
		name: "takes a snapshot that later commits do not change",
		async run({ backend }) {
			const stored = await Promise.all(
				Array.from({ length: 200 }, (_, index) => store(backend, resource(`artist-${index}`))),
			);
			const expected = await backend.list(query());
			const snapshot = await backend.snapshot(query());
			assert.equal(snapshot.version, expected.version);
			const reading = snapshot.resources()[Symbol.iterator]();
			const read = Array.from({ length: 50 }, () => reading.next().value);
			for (const [index, each] of stored.entries()) {
				if (index % 3 === 0) {
					await backend.commit([remove(each)]);
				} else {
					await store(backend, resource(nameOf(each)), each.version);
				}
				await store(backend, resource(`later-${index}`));
			}
			for (let step = reading.next(); !step.done; step = reading.next()) {
				read.push(step.value);
			}
			assert.equal(read.length, 200);
			assert.ok(read.every((each, index) => each === expected.resources[index]));
			assert.deepEqual([...snapshot.resources()], expected.resources);
		},
	},
	{
		name: "says which commit was the newest to change the family, whichever commits others followed",
		async run({ backend }) {
			const newest = async (type = artistType) =>
				(await backend.snapshot({ ...query(), type })).familyVersion;
			const before = await newest();
			assert.ok(Number(before) <= Number((await backend.snapshot(query())).version));
			const a = await store(backend, resource("a"));
			assert.equal(await newest(), a.version);
			const album = await store(backend, resource("one", { type: albumType }));
			assert.equal(await newest(), a.version);
			assert.equal(await newest(albumType), album.version);
			const { version } = await backend.commit([remove(a)]);
			assert.equal(await newest(), version);
			assert.equal(await newest(albumType), album.version);
		},
	},
	{
		name: "continues after a name, page by page, for every query",
		async run(harness) {
			await fill(harness);
			for (const each of allQueries) {
				const { resources: expected } = await harness.backend.list(each);
				const snapshot = await harness.backend.snapshot(each);
				const paged: Resource[] = [];
				for (let page: readonly Resource[] = expected; page.length > 0; ) {
					const last = paged.at(-1);
					page = [...snapshot.resources(last && idOf(last))].slice(0, 5);
					paged.push(...page);
				}
				assert.deepEqual(paged, expected);
			}
		},
	},
	{
		name: "continues after a name that does not exist",
		async run({ backend }) {
			for (const name of ["a", "c", "e"]) {
				await store(backend, resource(name));
			}
			const snapshot = await backend.snapshot(
				query({ partition: "default", namespace: "default" }),
			);
			const behind = (name: string) => [...snapshot.resources(idFor(name))].map(nameOf);
			assert.deepEqual(behind("b"), ["c", "e"]);
			assert.deepEqual(behind("0"), ["a", "c", "e"]);
			assert.deepEqual(behind("z"), []);
		},
	},
];

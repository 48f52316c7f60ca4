/**
 * What reads, writes and pages of a list cost as the stored resources become more, a page also far into the list; and
 * what a step costs that gives back the space of deleted resources.
 */
import { join } from "node:path";
import { computedMicroseconds, GrowthTable, numberOption, unlessQuick } from "@plinth/bench";
import { type FamilyLike, nameKey } from "@plinth/resource";
import { StorageReader } from "../src/file/storage-reader.ts";
import { StorageWriter } from "../src/file/storage-writer.ts";
import { createSqliteBackend, type SqliteBackend } from "../src/index.ts";
import { fill, nthArtist } from "./fill.ts";
import { inTemporaryDirectory } from "./temporary-directory.ts";

const smallest = numberOption("resources", 1_000, 100);
const times = unlessQuick(2_000, 20);
const type: FamilyLike = { group: "demo", kind: "Artist" };
const limits = { memoryBytes: 2 ** 33 };

/** An operation that is done many times; `at` goes through the resources in a spread order. */
type Operation = (backend: SqliteBackend, at: number, size: number) => Promise<unknown>;

const pageOf =
	(share: number): Operation =>
	async (backend, _, size) => {
		const query = { type, tenancy: { partition: "default", namespace: "*" }, namePrefix: "" };
		const snapshot = await backend.snapshot(query);
		const after = nthArtist(Math.floor(size * share));
		let left = 100;
		for (const _resource of snapshot.resources(share === 0 ? undefined : after.id)) {
			left -= 1;
			if (left === 0) {
				break;
			}
		}
	};

const operations: Readonly<Record<string, Operation>> = {
	read: (backend, at) => backend.lookup(nthArtist(at).id ?? { name: "" }),
	async write(backend, at) {
		const { id } = nthArtist(at);
		const stored = id && (await backend.read({ ...id, uid: "" }));
		return (
			stored && backend.commit([{ op: "put", resource: stored, expectedVersion: stored.version }])
		);
	},
	"page of 100, the first": pageOf(0),
	"page of 100, halfway": pageOf(0.5),
};

await inTemporaryDirectory(async (directory) => {
	const path = (size: number) => join(directory, `${size}.db`);
	for (const size of [smallest, 10 * smallest, 100 * smallest]) {
		fill(path(size), size);
	}
	const table = new GrowthTable("Operations of a storage in sqlite", "µs each, all threads");
	for (const [name, operation] of Object.entries(operations)) {
		await table.measure(
			name,
			smallest,
			async (size) => {
				const backend = await createSqliteBackend({ path: path(size), limits });
				const microseconds = await computedMicroseconds(async () => {
					for (let at = 0; at < times; at++) {
						await operation(backend, (at * 7_919) % size, size);
					}
				});
				await backend.close();
				return microseconds / times;
			},
			{ rounds: 1 },
		);
	}
	table.print();

	const space = new GrowthTable("Space of deleted resources, sqlite", "ms per step of 256 pages");
	await space.measure(
		"step",
		10 * smallest,
		async (size) => {
			const file = join(directory, `deleted-${size}-${performance.now()}.db`);
			fill(file, size);
			const reader = new StorageReader(file);
			reader.close();
			const writer = new StorageWriter(file, reader.head);
			for (let first = 0; first < size; first += 10_000) {
				const count = Math.min(10_000, size - first);
				const rows = Array.from({ length: count }, (_, offset) => {
					const key = nameKey(nthArtist(first + offset).id ?? { name: "" });
					return { key, revision: size + first + 1 };
				});
				writer.write(size + first + 1, rows);
			}
			let steps = 0;
			const microseconds = await computedMicroseconds(() => {
				while (writer.space.giveBack(256) > 0) {
					steps += 1;
				}
			});
			writer.close();
			return microseconds / 1_000 / Math.max(1, steps);
		},
		{ rounds: 1 },
	);
	space.print();
});

/** What the benches of durable storages share. Not published. */
import { create } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import {
	ComparisonTable,
	interleave,
	type Load,
	latencyCells,
	numberOption,
	runCallers,
	unlessQuick,
} from "@plinth/bench";
import { type Resource, ResourceSchema } from "@plinth/proto";
import type { StorageBackend } from "../src/index.ts";

const seconds = numberOption("seconds", 1, 0.1);

/** Each writer creates a hundred resources, and then replaces them in turn. */
const names = 100;

/** A resource of about 500 bytes. */
function artist(name: string): Resource {
	return create(ResourceSchema, {
		id: {
			name,
			uid: "01J9ZZZZZZZZZZZZZZZZZZZZZZ",
			type: { group: "demo", groupVersion: "v2", kind: "Artist" },
			tenancy: { partition: "default", namespace: "default" },
		},
		generation: "01J9ZZZZZZZZZZZZZZZZZZZZZZ",
		metadata: { team: "jazz" },
		data: create(AnySchema, {
			typeUrl: "type.googleapis.com/acme.demo.v2.Artist",
			value: new Uint8Array(300),
		}),
	});
}

/** The load of writers that each write their own resources, one after another. */
export function loadOfWriters(
	writers: number,
	write: (resource: Resource, name: string) => Promise<void>,
): Promise<Load> {
	return runCallers(writers, seconds, (writer, step) => {
		const name = `artist-${writer}-${step % names}`;
		return write(artist(name), name);
	});
}

/** The same load on a backend, which is closed. */
export async function loadOfCommits(
	backend: StorageBackend & { close(): Promise<void> },
	writers: number,
): Promise<Load> {
	const versions = new Map<string, string>();
	const measured = await loadOfWriters(writers, async (resource, name) => {
		const expectedVersion = versions.get(name) ?? "";
		const { version } = await backend.commit([{ op: "put", resource, expectedVersion }]);
		versions.set(name, version);
	});
	await backend.close();
	return measured;
}

/** Prints the time per commit and the latencies of group commit, by how many write at once, against another way. */
export async function compareWithGroupCommit(
	title: string,
	groupCommit: (writers: number) => Promise<Load>,
	[otherName, other]: readonly [name: string, (writers: number) => Promise<Load>],
): Promise<void> {
	const table = new ComparisonTable(title, "µs");
	for (const writers of [1, 16, 64, 256]) {
		let last: Load | undefined;
		const figures = await interleave(
			{
				"group commit": async () => {
					last = await groupCommit(writers);
					return 1e6 / last.perSecond;
				},
				[otherName]: async () => 1e6 / (await other(writers)).perSecond,
			},
			{ rounds: unlessQuick(5, 1), warmUpRounds: 0 },
		);
		table.add(`${writers} writers`, figures, latencyCells(last?.latenciesMs ?? []));
	}
	table.print();
}

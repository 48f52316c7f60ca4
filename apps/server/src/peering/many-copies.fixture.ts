import { join } from "node:path";
import type { Resource } from "@plinth/proto";
import type { ImportReport } from "@plinth/proto/gen/plinth/peering/v1/peering_service_pb.js";
import { decodeShared, idOf } from "@plinth/resource";
import { seededRandom } from "@plinth/runtime/testing";
import { temporaryFolder } from "@plinth/test-support";
import { vi } from "vitest";
import { Artist, artist } from "../../testdata/music.ts";
import { each, importArtists, ProcessCluster, peerProcesses } from "./process-cluster.fixture.ts";

/** What a run has measured, in milliseconds. */
export interface Findings {
	/** Until all resources were copied, with a kill of each side meanwhile. */
	readonly copiedMs: number;
	/** Until the copies were right again, after each harm. */
	readonly healedMs: Readonly<Record<string, number>>;
	readonly report: ImportReport | undefined;
}

/** What differs between the artists of `west` and their copies: at most a few of many. */
async function differences(west: ProcessCluster, east: ProcessCluster): Promise<readonly string[]> {
	const textOf = (resource: Resource) => decodeShared(Artist, resource).data.genre;
	const copies = new Map<string, Resource>();
	for await (const copy of east.artists("west")) {
		copies.set(copy.id?.name ?? "", copy);
	}
	const found: string[] = [];
	for await (const original of west.artists("default")) {
		const name = original.id?.name ?? "";
		const copy = copies.get(name);
		copies.delete(name);
		if (copy === undefined) {
			found.push(`${name} was not copied`);
		} else if (
			textOf(copy) !== textOf(original) ||
			copy.origin?.uid !== original.id?.uid ||
			copy.generation !== original.generation
		) {
			found.push(`${name} differs`);
		}
	}
	found.push(...[...copies.keys()].map((name) => `${name} was deleted, and its copy is there`));
	return found.slice(0, 5);
}

/**
 * Peers two clusters, copies many resources, and kills and restores either side: after each harm, the copies must become what
 * the originals are.
 *
 * @param count - the number of resources.
 * @throws Error if copies stay wrong.
 */
export async function copyMany(count: number): Promise<Findings> {
	const random = seededRandom(1);
	const west = await ProcessCluster.start();
	const east = await ProcessCluster.start();
	await each(count, (index) => west.resources.write({ resource: artist(`artist-${index}`) }));

	const waitMs = 300_000 + count * 10;
	const isRight = () =>
		vi.waitFor(
			async () => {
				const report = await east.report();
				if (report?.state !== "Streaming" || report.lagMs !== 0n) {
					throw new Error(`the import is ${report?.state}, ${report?.lagMs} ms behind`);
				}
				const found = await differences(west, east);
				if (found.length > 0) {
					throw new Error(found.join(", "));
				}
			},
			{ timeout: waitMs, interval: 200 },
		);
	const healedMs: Record<string, number> = {};
	const heals = async (harm: string) => {
		const begunAt = performance.now();
		await isRight();
		healedMs[harm] = Math.round(performance.now() - begunAt);
	};
	const change = (changes: number) =>
		each(changes, async () => {
			const name = `artist-${Math.floor(random.next() * count * 1.05)}`;
			await (random.next() < 0.3
				? west.resources.delete({ id: idOf(Artist, name) })
				: west.resources.write({ resource: artist(name, `genre ${random.next()}`) }));
		});
	const copied = async () => Number((await east.report())?.copies["music.v1.Artist"] ?? 0n);

	const begunAt = performance.now();
	await peerProcesses(west, east);
	await importArtists(east, "artists", "west");
	await vi.waitFor(
		async () => {
			if ((await copied()) < count / 4) {
				throw new Error("too few copies");
			}
		},
		{ timeout: waitMs, interval: 20 },
	);
	await east.killAndStart();
	await west.killAndStart();
	await isRight();
	const copiedMs = Math.round(performance.now() - begunAt);

	for (const side of ["east", "west", "east", "west"] as const) {
		const changing = change(200).catch(() => {});
		await (side === "west" ? west : east).killAndStart();
		await changing;
		await heals(`${side} was killed`);
	}
	for (const side of ["west", "east"] as const) {
		const cluster = side === "west" ? west : east;
		const backup = join(await temporaryFolder(), "backup.sqlite");
		await cluster.kill();
		await cluster.command("backup", backup);
		await cluster.start();
		await change(200);
		await isRight();
		await cluster.kill();
		await cluster.command("restore", backup);
		await cluster.start();
		await heals(`${side} was restored`);
	}
	await change(200);
	await heals("nothing");
	return { copiedMs, healedMs, report: await east.report() };
}

import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { type Client, createClient } from "@connectrpc/connect";
import { Export, Import } from "@plinth/peering";
import { type Resource, ResourceService } from "@plinth/proto";
import { ExportSchema, ImportSchema } from "@plinth/proto/gen/plinth/peering/v1/peering_pb.js";
import {
	type ImportReport,
	PeeringService,
} from "@plinth/proto/gen/plinth/peering/v1/peering_service_pb.js";
import { decodeShared, idOf, resourceOf, typeOf } from "@plinth/resource";
import { createPlinthTransport } from "@plinth/rpc-client";
import { seededRandom } from "@plinth/runtime/testing";
import { temporaryFolder } from "@plinth/test-support";
import { freePort } from "@plinth/test-support/ports";
import { onTestFinished, vi } from "vitest";
import { Artist, artist } from "../../testdata/music.ts";
import { musicModuleFile, ServerProcess } from "../server-process.fixture.ts";
import { allArtists } from "./two-clusters.fixture.ts";

/** What a run has measured, in milliseconds. */
export interface Findings {
	/** Until all resources were copied, with a kill of each side meanwhile. */
	readonly copiedMs: number;
	/** Until the copies were right again, after each harm. */
	readonly healedMs: Readonly<Record<string, number>>;
	readonly report: ImportReport | undefined;
}

const callers = 32;

/** A cluster of one server, as a process, which is killed, backed up and restored. */
class ProcessCluster {
	readonly #directory: string;
	readonly #port: number;
	#process: ServerProcess | undefined;
	readonly resources: Client<typeof ResourceService>;
	readonly peerings: Client<typeof PeeringService>;

	private constructor(directory: string, port: number) {
		this.#directory = directory;
		this.#port = port;
		const transport = createPlinthTransport({ baseUrl: this.address });
		onTestFinished(() => transport.close());
		this.resources = createClient(ResourceService, transport);
		this.peerings = createClient(PeeringService, transport);
	}

	static async start(): Promise<ProcessCluster> {
		const cluster = new ProcessCluster(await temporaryFolder(), await freePort());
		await cluster.start();
		return cluster;
	}

	get address(): string {
		return `http://127.0.0.1:${this.#port}`;
	}

	async start(): Promise<void> {
		this.#process = new ServerProcess(
			...[`--data-dir=${this.#directory}`, `--listen=127.0.0.1:${this.#port}`],
			`--module=${musicModuleFile}`,
		);
		await this.#process.listening();
	}

	async kill(): Promise<void> {
		this.#process?.kill("SIGKILL");
		await this.#process?.ended;
	}

	async killAndStart(): Promise<void> {
		await this.kill();
		await this.start();
	}

	/** Runs `plinth-server backup` or `restore`, while the server does not run. */
	async command(name: "backup" | "restore", file: string): Promise<void> {
		const { code, stderr } = await new ServerProcess(name, file, `--data-dir=${this.#directory}`)
			.ended;
		if (code !== 0) {
			throw new Error(`${name} ended with ${code}: ${stderr}`);
		}
	}

	/** All artists of a partition. */
	async *artists(partition: string): AsyncGenerator<Resource> {
		let pageToken = "";
		do {
			const page = await this.resources.list({
				...{ type: typeOf(Artist.type), tenancy: { partition, namespace: "*" } },
				...{ pageSize: 1_000, pageToken },
			});
			yield* page.resources;
			pageToken = page.nextPageToken;
		} while (pageToken !== "");
	}

	async report(): Promise<ImportReport | undefined> {
		const { peerings } = await this.peerings.listPeerings({});
		return peerings.flatMap(({ imports }) => imports)[0];
	}
}

/** Calls a function with each index, some at a time. */
async function each(count: number, call: (index: number) => Promise<unknown>): Promise<void> {
	let next = 0;
	const run = async () => {
		while (next < count) {
			await call(next++);
		}
	};
	await Promise.all(Array.from({ length: callers }, run));
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
	const { token } = await west.peerings.createToken({ name: "east", address: west.address });
	await east.peerings.establish({ name: "west", token });
	await west.resources.write({
		resource: resourceOf(Export, {
			id: idOf(Export, "artists"),
			data: create(ExportSchema, allArtists),
		}),
	});
	await east.resources.write({
		resource: resourceOf(Import, {
			id: idOf(Import, "artists"),
			data: create(ImportSchema, { peer: "west", export: "artists", partition: "west" }),
		}),
	});
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

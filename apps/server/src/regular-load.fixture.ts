import { create } from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import { type Client, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { type Resource, ResourceService } from "@plinth/proto";
import { idOf, resourceOf, typeOf } from "@plinth/resource";
import { ArtistSchema } from "../testdata/gen/music/v1/music_pb.ts";
import { Artist } from "../testdata/music.ts";

/** The observations of a regular load. */
export interface RegularFigures {
	readonly reads: number;
	readonly writes: number;
	readonly failures: Readonly<Record<string, number>>;
	readonly readP99Ms: number;
	readonly writeP99Ms: number;
	readonly medianMs: number;
}

const tenancy = { partition: "default", namespace: "regular" };
const pauseMs = 20;
const writers = 4;
const readers = 4;

/**
 * Well-behaved clients of a server: four that write, each its own resource, four that read, and one that watches. Each
 * acknowledged write is remembered.
 */
export class RegularLoad {
	readonly #client: Client<typeof ResourceService>;
	readonly #headers: Readonly<Record<string, string>>;
	/** Contents by the version under which they were acknowledged, of each name. */
	readonly #acknowledged = new Map<string, Map<string, string>>();
	/** Names whose last write had an unknown outcome. */
	readonly #unknown = new Set<string>();
	readonly #watched = new Map<string, string>();
	readonly #watchEnd = new AbortController();
	#watching: Promise<void> = Promise.resolve();
	#watchRestarts = 0;
	#serial = 0;

	constructor(address: string, token: string) {
		this.#client = createClient(ResourceService, createGrpcTransport({ baseUrl: address }));
		this.#headers = { authorization: `Bearer ${token}` };
	}

	/** Runs until `until` settles. Returns the observations. */
	async run(until: Promise<unknown>): Promise<RegularFigures> {
		for (let index = 0; index < writers; index += 1) {
			await this.#write(`regular-${index}`);
		}
		let running = true;
		const stop = () => {
			running = false;
		};
		until.then(stop, stop);
		const readMs: number[] = [];
		const writeMs: number[] = [];
		const failures = new Map<string, number>();
		const loop = async (tookMs: number[], call: () => Promise<void>) => {
			while (running) {
				const startMs = performance.now();
				try {
					await call();
				} catch (failure) {
					const { code, rawMessage } = ConnectError.from(failure);
					const what = `${code} ${rawMessage}`;
					failures.set(what, (failures.get(what) ?? 0) + 1);
				}
				tookMs.push(performance.now() - startMs);
				await new Promise((resolve) => setTimeout(resolve, pauseMs));
			}
		};
		await Promise.all([
			...Array.from({ length: writers }, (_, index) =>
				loop(writeMs, () => this.#write(`regular-${index}`)),
			),
			...Array.from({ length: readers }, (_, index) =>
				loop(readMs, () => this.#read(`regular-${index}`)),
			),
		]);
		return {
			reads: readMs.length,
			writes: writeMs.length,
			failures: Object.fromEntries(failures),
			readP99Ms: quantile(readMs, 0.99),
			writeP99Ms: quantile(writeMs, 0.99),
			medianMs: quantile([...readMs, ...writeMs], 0.5),
		};
	}

	/** Watches everything that this load writes, and resumes when the watch ends. */
	watch(): void {
		let after = "";
		this.#watching = (async () => {
			while (!this.#watchEnd.signal.aborted) {
				try {
					const request = { type: typeOf(Artist.type), tenancy, afterVersion: after };
					const options = { headers: { ...this.#headers }, signal: this.#watchEnd.signal };
					for await (const { event, version } of this.#client.watchList(request, options)) {
						after = version || after;
						if (event.case === "upsert" && event.value.resource !== undefined) {
							const { id, version: written } = event.value.resource;
							this.#watched.set(`${id?.name}@${written}`, contentOf(event.value.resource));
						}
					}
				} catch {
					this.#watchRestarts += 1;
					await new Promise((resolve) => setTimeout(resolve, 200));
				}
			}
		})();
	}

	/**
	 * Compares all acknowledged writes with the stored resources and with the events of the watch, once it has caught up.
	 *
	 * @returns the problems; none if each acknowledged write was kept.
	 */
	async problems(): Promise<readonly string[]> {
		const problems: string[] = [];
		const names = [...this.#acknowledged.keys()];
		for (const name of names) {
			const versions = this.#acknowledged.get(name) ?? new Map<string, string>();
			const last = [...versions.keys()].at(-1) ?? "";
			const { resource } = await this.#client.read(
				{ id: idOf(Artist, name, tenancy) },
				{ headers: { ...this.#headers } },
			);
			const isLast =
				resource?.version === last &&
				resource !== undefined &&
				contentOf(resource) === versions.get(last);
			if (!isLast && !this.#unknown.has(name)) {
				problems.push(`${name} is at ${resource?.version}, acknowledged at ${last}`);
			}
			while (!this.#watched.has(`${name}@${resource?.version}`)) {
				await new Promise((resolve) => setTimeout(resolve, 50));
			}
			for (const [version, content] of versions) {
				if (this.#watched.get(`${name}@${version}`) !== content) {
					problems.push(`the watch did not receive ${name} at ${version}`);
				}
			}
		}
		return problems;
	}

	get acknowledged(): number {
		return [...this.#acknowledged.values()].reduce((sum, versions) => sum + versions.size, 0);
	}

	get watchRestarts(): number {
		return this.#watchRestarts;
	}

	async close(): Promise<void> {
		this.#watchEnd.abort();
		await this.#watching;
	}

	async #write(name: string): Promise<void> {
		this.#serial += 1;
		const content = `content ${this.#serial}`;
		this.#unknown.add(name);
		const { resource } = await this.#client.write(
			{
				resource: resourceOf(Artist, {
					id: idOf(Artist, name, tenancy),
					data: create(ArtistSchema, { genre: content }),
				}),
			},
			{ headers: { ...this.#headers } },
		);
		this.#unknown.delete(name);
		const versions = this.#acknowledged.get(name) ?? new Map<string, string>();
		versions.set(resource?.version ?? "", content);
		this.#acknowledged.set(name, versions);
	}

	async #read(name: string): Promise<void> {
		await this.#client.read({ id: idOf(Artist, name, tenancy) }, { headers: { ...this.#headers } });
	}
}

function contentOf(resource: Resource): string {
	return resource.data === undefined ? "" : (anyUnpack(resource.data, ArtistSchema)?.genre ?? "");
}

function quantile(numbers: readonly number[], share: number): number {
	const sorted = [...numbers].sort((a, b) => a - b);
	return Math.round((sorted[Math.floor(share * (sorted.length - 1))] ?? Number.NaN) * 10) / 10;
}

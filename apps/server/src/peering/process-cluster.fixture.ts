import { create } from "@bufbuild/protobuf";
import { type Client, createClient } from "@connectrpc/connect";
import { Export, Import } from "@plinth/peering";
import { type Resource, ResourceService } from "@plinth/proto";
import { ExportSchema, ImportSchema } from "@plinth/proto/gen/plinth/peering/v1/peering_pb.js";
import {
	type ImportReport,
	PeeringService,
} from "@plinth/proto/gen/plinth/peering/v1/peering_service_pb.js";
import { idOf, resourceOf, typeOf } from "@plinth/resource";
import { createPlinthTransport } from "@plinth/rpc-client";
import { temporaryFolder } from "@plinth/test-support";
import { freePort } from "@plinth/test-support/ports";
import { onTestFinished } from "vitest";
import { Artist } from "../../testdata/music.ts";
import { musicModuleFile, ServerProcess } from "../server-process.fixture.ts";
import { allArtists } from "./two-clusters.fixture.ts";

const callers = 32;

/** A cluster of one server, or one of its servers, as a process, which is killed, backed up and restored. */
export class ProcessCluster {
	readonly #storage: readonly string[];
	readonly #port: number;
	#process: ServerProcess | undefined;
	readonly resources: Client<typeof ResourceService>;
	readonly peerings: Client<typeof PeeringService>;

	private constructor(storage: readonly string[], port: number) {
		this.#storage = storage;
		this.#port = port;
		const transport = createPlinthTransport({ baseUrl: this.address });
		onTestFinished(() => transport.close());
		this.resources = createClient(ResourceService, transport);
		this.peerings = createClient(PeeringService, transport);
	}

	/** @param storage - flags of the server; by default a folder of its own, which `command` needs. */
	static async start(storage?: readonly string[]): Promise<ProcessCluster> {
		const own = storage ?? [`--data-dir=${await temporaryFolder()}`];
		const cluster = new ProcessCluster(own, await freePort());
		await cluster.start();
		return cluster;
	}

	get address(): string {
		return `http://127.0.0.1:${this.#port}`;
	}

	async start(): Promise<void> {
		this.#process = new ServerProcess(
			...[...this.#storage, `--listen=127.0.0.1:${this.#port}`],
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
		const { code, stderr } = await new ServerProcess(name, file, ...this.#storage).ended;
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

	/** What is reported of an import. */
	async report(name = "artists"): Promise<ImportReport | undefined> {
		const { peerings } = await this.peerings.listPeerings({});
		return peerings.flatMap(({ imports }) => imports).find((it) => it.name === name);
	}
}

/** Calls a function with each index, some at a time. */
export async function each(
	count: number,
	call: (index: number) => Promise<unknown>,
): Promise<void> {
	let next = 0;
	const run = async () => {
		while (next < count) {
			await call(next++);
		}
	};
	await Promise.all(Array.from({ length: callers }, run));
}

/** Lets `east` dial `west`, which exports its artists to it. */
export async function peerProcesses(west: ProcessCluster, east: ProcessCluster): Promise<void> {
	const { token } = await west.peerings.createToken({ name: "east", address: west.address });
	await east.peerings.establish({ name: "west", token });
	const data = create(ExportSchema, allArtists);
	await west.resources.write({
		resource: resourceOf(Export, { id: idOf(Export, "artists"), data }),
	});
}

/** Imports all artists of `west` into a partition. */
export async function importArtists(
	east: ProcessCluster,
	name: string,
	partition: string,
): Promise<void> {
	const data = create(ImportSchema, { peer: "west", export: "artists", partition });
	await east.resources.write({ resource: resourceOf(Import, { id: idOf(Import, name), data }) });
}

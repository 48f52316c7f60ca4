import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Client, createClient } from "@connectrpc/connect";
import { Export, Import } from "@plinth/peering";
import type { Resource } from "@plinth/proto";
import { ExportSchema, ImportSchema } from "@plinth/proto/gen/plinth/peering/v1/peering_pb.js";
import {
	type ImportReport,
	PeeringService,
} from "@plinth/proto/gen/plinth/peering/v1/peering_service_pb.js";
import { decodeShared, idOf, resourceOf, typeOf } from "@plinth/resource";
import { createPlinthTransport } from "@plinth/rpc-client";
import { temporaryFolder } from "@plinth/test-support";
import { freePort } from "@plinth/test-support/ports";
import { onTestFinished, vi } from "vitest";
import { Artist, musicModule } from "../../testdata/music.ts";
import type { Server } from "../server.ts";
import type { ServerOptions } from "../server-options.ts";
import { startServer } from "../started-server.fixture.ts";

/** A cluster of one server, whose storage and address outlive the server. */
export class TestCluster {
	readonly #options: Partial<ServerOptions>;
	#server: Server | undefined;

	private constructor(options: Partial<ServerOptions>) {
		this.#options = options;
	}

	static async start(options: Partial<ServerOptions> = {}): Promise<TestCluster> {
		const cluster = new TestCluster({
			modules: [musicModule()],
			storage: { kind: "sqlite", directory: await temporaryFolder() },
			listen: { host: "127.0.0.1", port: await freePort() },
			...options,
		});
		await cluster.startAgain();
		return cluster;
	}

	/** The folder of its storage. */
	get directory(): string {
		const { storage } = this.#options;
		return storage?.kind === "sqlite" ? storage.directory : "";
	}

	get server(): Server {
		if (this.#server === undefined) {
			throw new Error("the cluster is stopped");
		}
		return this.#server;
	}

	async stop(): Promise<void> {
		await this.#server?.stop();
	}

	/** Starts it on its storage, with other options than before, if there are any. */
	async startAgain(options: Partial<ServerOptions> = {}): Promise<void> {
		this.#server = await startServer({ ...this.#options, ...options });
	}

	/** A client of the service for users, with a token. */
	peerings(token?: string): Client<typeof PeeringService> {
		return createClient(PeeringService, this.transport(token));
	}

	transport(token?: string) {
		const transport = createPlinthTransport({
			baseUrl: this.server.address,
			headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
		});
		onTestFinished(() => transport.close());
		return transport;
	}

	write(resource: Resource) {
		return this.server.client.write({ resource });
	}

	async export(name: string, init: MessageInitShape<typeof ExportSchema>): Promise<void> {
		const data = create(ExportSchema, init);
		await this.write(resourceOf(Export, { id: idOf(Export, name), data }));
	}

	async import(name: string, init: MessageInitShape<typeof ImportSchema>): Promise<void> {
		const data = create(ImportSchema, init);
		await this.write(resourceOf(Import, { id: idOf(Import, name), data }));
	}

	/** The artists of a partition, or of all with all copies, as `namespace/name=genre`. */
	async artists(partition: string): Promise<readonly string[]> {
		const { resources } = await this.server.client.list({
			type: typeOf(Artist.type),
			tenancy: { partition, namespace: "*" },
			region: partition === "*" ? "*" : "",
		});
		return resources.map((resource) => {
			const { id } = resource;
			return `${id?.tenancy?.namespace}/${id?.name}=${decodeShared(Artist, resource).data.genre}`;
		});
	}

	async artist(name: string, partition: string, namespace = "default") {
		const id = idOf(Artist, name, { partition, namespace });
		return (await this.server.client.read({ id })).resource;
	}

	/** What is reported of an import. */
	async report(name: string): Promise<ImportReport | undefined> {
		const { peerings } = await this.peerings().listPeerings({});
		return peerings.flatMap(({ imports }) => imports).find((each) => each.name === name);
	}
}

/** Waits until something holds. */
export function eventually<T>(check: () => Promise<T> | T): Promise<T> {
	return vi.waitFor(check, { timeout: 300_000, interval: 50 });
}

/** Everything about artists of the partition `default`, for the peer `east`. */
export const allArtists = {
	peers: ["east"],
	partition: "default",
	types: [{ type: typeOf(Artist.type) }],
};

/** Lets `east` dial `west`. */
export async function peer(west: TestCluster, east: TestCluster): Promise<void> {
	const { token } = await west
		.peerings()
		.createToken({ name: "east", address: west.server.address });
	await east.peerings().establish({ name: "west", token });
}

/** Two clusters, of which `east` imports the artists of `west`. Each has the options that are given for it. */
export async function importing(
	ofWest: Partial<ServerOptions> = {},
	ofEast: Partial<ServerOptions> = {},
): Promise<{
	readonly west: TestCluster;
	readonly east: TestCluster;
}> {
	const west = await TestCluster.start(ofWest);
	const east = await TestCluster.start(ofEast);
	await peer(west, east);
	await west.export("artists", allArtists);
	await east.import("artists", { peer: "west", export: "artists", partition: "west" });
	return { west, east };
}

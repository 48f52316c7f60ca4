import { create } from "@bufbuild/protobuf";
import { type Client, createClient } from "@connectrpc/connect";
import { Deployment } from "@plinth/db-constraint";
import {
	NamespaceSchema,
	PartitionSchema,
	type Resource,
	type ResourceService,
} from "@plinth/proto";
import {
	type ImportReport,
	PeeringReport_Role,
	PeeringService,
} from "@plinth/proto/gen/plinth/peering/v1/peering_service_pb.js";
import { decodeShared, idOf, Namespace, Partition, resourceOf, typeOf } from "@plinth/resource";
import { freePort } from "@plinth/test-support/ports";
import { ArtistSchema } from "../../testdata/gen/music/v1/music_pb.ts";
import { Artist, musicModule } from "../../testdata/music.ts";
import { transportWith } from "../callers.fixture.ts";
import type { Server } from "../server.ts";
import type { ServerOptions } from "../server-options.ts";
import { credentialFile, startDeployment } from "./started-deployment.fixture.ts";

/** How long tests wait for what happens in the other region. */
export const patiently = { timeout: 300_000, interval: 50 };

/** The deployment of the service `music` in one region. Its server can be stopped and started again. */
export class TestRegion {
	readonly region: string;
	/** The address of the internal listener. */
	readonly internal: string;
	readonly #start: () => Promise<Server>;
	server: Server;

	private constructor(
		region: string,
		internalPort: number,
		start: () => Promise<Server>,
		server: Server,
	) {
		this.region = region;
		this.internal = `http://127.0.0.1:${internalPort}`;
		this.#start = start;
		this.server = server;
	}

	static async start(
		region: string,
		{
			file,
			metaAddress,
			...options
		}: { readonly file: string; readonly metaAddress: string } & Partial<
			Pick<ServerOptions, "storage" | "modules" | "logger">
		>,
	): Promise<TestRegion> {
		const internalPort = await freePort();
		const start = async () => {
			const { server } = await startDeployment("music", file, {
				...{ region, internalPort, metaAddresses: [metaAddress], modules: [musicModule()] },
				...options,
			});
			return server;
		};
		return new TestRegion(region, internalPort, start, await start());
	}

	/** The uid of the deployment in the registry. */
	async uid(meta: Server): Promise<string> {
		const { resource } = await meta.client.read({ id: idOf(Deployment, `music-${this.region}`) });
		return resource?.id?.uid ?? "";
	}

	/** Starts the server again, after it was stopped. */
	async restart(): Promise<void> {
		this.server = await this.#start();
	}

	/** Lets the policy of a partition name these regions. Creates the partition if it is missing. */
	async partitionPolicy(partition: string, ...regions: string[]): Promise<void> {
		await this.server.client.write({ resource: partitionWithPolicy(partition, regions) });
	}

	/** Lets the policy of a namespace of the partition `default` name these regions. Creates the namespace if it is missing. */
	async namespacePolicy(namespace: string, ...regions: string[]): Promise<void> {
		const data = create(NamespaceSchema, { copies: { regions } });
		await this.server.client.write({
			resource: resourceOf(Namespace, { id: idOf(Namespace, namespace), data }),
		});
	}

	/** Writes an artist of the partition `default`. */
	async write(name: string, genre: string, namespace = "default"): Promise<void> {
		const id = idOf(Artist, name, { namespace });
		const data = create(ArtistSchema, { genre });
		await this.server.client.write({ resource: resourceOf(Artist, { id, data }) });
	}

	async delete(name: string, namespace = "default"): Promise<void> {
		await this.server.client.delete({ id: idOf(Artist, name, { namespace }) });
	}

	/** The artists of all partitions that a list with that region returns, as `region:namespace/name=genre`. */
	artists(region = "*"): Promise<readonly string[]> {
		return artistsOf(this.server.client, region);
	}

	/** What is reported of the copies of a partition of another region. */
	async report(region: string, partition = "default"): Promise<ImportReport | undefined> {
		const peerings = createClient(PeeringService, transportWith(this.server.address, ""));
		const reports = (await peerings.listPeerings({})).peerings.filter(
			({ role, name }) => role === PeeringReport_Role.REGION && name === region,
		);
		return reports.flatMap(({ imports }) => imports).find((each) => each.partition === partition);
	}
}

/** The artists of all partitions that a list with that region returns, as `region:namespace/name=genre`. */
export async function artistsOf(
	client: Pick<Client<typeof ResourceService>, "list">,
	region: string,
): Promise<readonly string[]> {
	const { resources } = await client.list({
		type: typeOf(Artist.type),
		tenancy: { partition: "*", namespace: "*" },
		region,
	});
	return resources.map((resource) => {
		const { id } = resource;
		const { genre } = decodeShared(Artist, resource).data;
		return `${id?.region ?? ""}:${id?.tenancy?.namespace}/${id?.name}=${genre}`;
	});
}

/** A partition whose policy names these regions. */
export function partitionWithPolicy(partition: string, regions: string[]): Resource {
	const data = create(PartitionSchema, { copies: { regions } });
	return resourceOf(Partition, { id: idOf(Partition, partition), data });
}

/** The options of one region of a test. */
type RegionOptions = Partial<Pick<ServerOptions, "storage" | "modules" | "logger">>;

/** The service `music` in the regions `r1` and `r2`, and a meta deployment. */
export async function startTwoRegions(
	options: { readonly west?: RegionOptions; readonly east?: RegionOptions } = {},
): Promise<{
	readonly meta: Server;
	readonly file: string;
	readonly metaAddress: string;
	readonly west: TestRegion;
	readonly east: TestRegion;
}> {
	const file = credentialFile();
	const { server: meta, internal: metaAddress } = await startDeployment("meta", file);
	const west = await TestRegion.start("r1", { file, metaAddress, ...options.west });
	const east = await TestRegion.start("r2", { file, metaAddress, ...options.east });
	return { meta, file, metaAddress, west, east };
}

import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { OfferRoute } from "@plinth/proto/gen/plinth/meta/v1/regional_copy_service_pb.js";
import {
	type OfferedType,
	OfferedTypeSchema,
	type StreamRequest,
	type StreamResponse,
} from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import { hasNamespace, labelProblem, type TypeRegistry, typeOf } from "@plinth/resource";
import type { Runtime } from "@plinth/runtime";
import type { StorageBackend } from "@plinth/storage";
import type { OfferedExport } from "../export/offered-export.ts";
import { OpenStreams, type StreamedExport } from "../export/open-streams.ts";
import { TypeExport } from "../export/type-export.ts";
import { peeringLimits, protocolVersion } from "../limits.ts";
import type { ClusterIdentity, OwnIdentity } from "../records/cluster-identity.ts";
import { typeProblem } from "../types.ts";
import {
	generationOf,
	isOffered,
	offerChanged,
	type PartitionOffer,
	partitionOffers,
	untilOfferChanged,
} from "./partition-offers.ts";
import type { OwnRegion } from "./regions.ts";

/** Options of `OfferStreams`. */
export interface OfferStreamsOptions {
	readonly backend: StorageBackend;
	readonly registry: TypeRegistry;
	readonly identity: OwnIdentity;
	readonly own: OwnRegion;
	readonly runtime: Runtime;
}

/** What is offered of one partition. */
interface Offered extends OfferedExport, ClusterIdentity {
	readonly offer: PartitionOffer;
}

/** What the policies of this deployment offer to other regions, and its streams to them. */
export class OfferStreams {
	readonly #options: OfferStreamsOptions;
	readonly #streams: OpenStreams;

	constructor(options: OfferStreamsOptions) {
		this.#options = options;
		this.#streams = new OpenStreams(options.backend, options.runtime);
	}

	/**
	 * The region that makes a call.
	 *
	 * @throws ConnectError FailedPrecondition, InvalidArgument; Unavailable if another deployment is called.
	 */
	async authenticate(route: OfferRoute | undefined): Promise<string> {
		const { own } = this.#options;
		const { protocolVersion: spoken = 0, service = "", region = "", toUid = "" } = route ?? {};
		if (spoken !== protocolVersion) {
			throw new ConnectError(
				`the protocol of regional copies has version ${protocolVersion} here, and version ${spoken} in the calling deployment: upgrade the older one`,
				Code.FailedPrecondition,
			);
		}
		if (toUid === "" || toUid !== (await own.uid())) {
			throw new ConnectError("another deployment is meant", Code.Unavailable);
		}
		if (service !== own.service) {
			throw new ConnectError(
				`service ${JSON.stringify(service.slice(0, 100))} has no copies of service ${own.service}`,
				Code.FailedPrecondition,
			);
		}
		requireLabel(region, "route.region");
		if (region === own.region) {
			throw new ConnectError(
				`this deployment is in the region ${region} itself`,
				Code.FailedPrecondition,
			);
		}
		return region;
	}

	/** The partitions of which something is offered. @throws StorageUnavailable. */
	async list(
		region: string,
	): Promise<{ readonly partitions: readonly string[]; readonly omitted: number }> {
		const offers = await partitionOffers(this.#options.backend, region, "*", {});
		const partitions = offers.slice(0, peeringLimits.offers).map(({ partition }) => partition);
		return { partitions, omitted: offers.length - partitions.length };
	}

	/** @throws ConnectError NotFound if nothing is offered of the partition. */
	async offered(region: string, partition: string): Promise<Offered> {
		requireLabel(partition, "partition");
		const { backend, registry, identity, own } = this.#options;
		const [offer] = await partitionOffers(backend, region, partition, { consistency: "strong" });
		if (offer === undefined) {
			throw new ConnectError(
				`no policy of partition ${partition} names the region ${region}`,
				Code.NotFound,
			);
		}
		const cluster = await identity.get();
		const { types, exports } = typesOf(offer, registry, cluster, own.region);
		const generation = generationOf(
			offer,
			exports.map(({ type }) => type.key),
		);
		return { ...cluster, offer, generation, types, exports };
	}

	/**
	 * Each resource is checked against the policies when it leaves. The state that has its change has all policies before it,
	 * while the watches of policies may be behind those of types.
	 *
	 * @throws ConnectError Aborted if what is offered has changed; NotFound; ResourceExhausted.
	 */
	async *open(
		region: string,
		request: StreamRequest,
		signal: AbortSignal,
	): AsyncGenerator<StreamResponse, void, undefined> {
		const { backend } = this.#options;
		const offered = await this.offered(region, request.export);
		const { offer } = offered;
		const responses = this.#streams.open({
			receiver: {
				...{ id: region, name: region },
				...{ maxStreams: peeringLimits.offers, maxTypes: peeringLimits.offeredTypes },
			},
			...{ request, offered, signal },
			changed: (ended) => untilOfferChanged(backend, offer, region, ended),
		});
		for await (const response of responses) {
			if (response.message.case === "upsert") {
				const namespace = response.message.value.resource?.id?.tenancy?.namespace ?? "";
				if (!(await isOffered(backend, { partition: offer.partition, namespace }, region))) {
					throw new ConnectError(`${offerChanged(offer, region)}: stream again`, Code.Aborted);
				}
			}
			yield response;
		}
	}

	/** @throws ConnectError NotFound if the region has no such stream here. */
	acknowledge(region: string, streamId: string, sequence: bigint): void {
		this.#streams.acknowledge(region, streamId, sequence);
	}

	/** The streams that are or were open, by region and partition. */
	get state(): readonly StreamedExport[] {
		return this.#streams.state;
	}
}

/** The types of an offer: all but those of the server, and those outside of the namespaces that are offered. */
function typesOf(
	{ partition, namespaces }: PartitionOffer,
	registry: TypeRegistry,
	own: ClusterIdentity,
	home: string,
) {
	const offered = registry
		.all()
		.filter(
			(type) =>
				typeProblem(type, type.key) === undefined &&
				(namespaces === undefined || hasNamespace(type.scope)),
		);
	const types: OfferedType[] = [];
	const exports: TypeExport[] = [];
	for (const type of offered) {
		const versions = offered.filter(({ family }) => family === type.family);
		types.push(create(OfferedTypeSchema, { type: typeOf(type.type) }));
		exports.push(
			new TypeExport({
				...{ type, own },
				definition: { partition, namespaces: [...(namespaces ?? [])] },
				exported: { namePrefixes: [], maskedFields: [] },
				receiver: {
					...{ kind: "region", home },
					versions: new Set(versions.map((each) => each.type.groupVersion)),
				},
			}),
		);
	}
	return { types, exports };
}

function requireLabel(value: string, path: string): void {
	const problem = labelProblem(value);
	if (problem !== undefined) {
		throw new ConnectError(
			`${path} invalid: ${problem}, got: ${JSON.stringify(value.slice(0, 100))}`,
			Code.InvalidArgument,
		);
	}
}

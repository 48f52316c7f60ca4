import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import {
	type OfferRoute,
	OfferRouteSchema,
	RegionalCopyService,
} from "@plinth/proto/gen/plinth/meta/v1/regional_copy_service_pb.js";
import type { StreamResponse } from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import { isUlid } from "@plinth/resource";
import type { Random } from "@plinth/runtime";
import { ProtocolViolation } from "../import/apply-messages.ts";
import { checkOffered } from "../import/check-offered.ts";
import { type DescribedSource, ImportRefused, type ImportSource } from "../import/import-source.ts";
import type { RegionPlace } from "../import/incoming-copy.ts";
import { peeringLimits, protocolVersion } from "../limits.ts";
import type { OtherRegion, OwnRegion, Regions } from "./regions.ts";

/** What calls of other regions need. */
export interface RegionCalls {
	readonly own: Pick<OwnRegion, "service" | "region">;
	readonly regions: Pick<Regions, "connect">;
	readonly random: Random;
}

/** What one partition of another region offers. */
export interface RegionSourceOptions extends RegionCalls {
	readonly region: string;
	readonly partition: string;
	/** The deployment of the region, as it is known now; `undefined` if it is not. */
	readonly deployment: () => OtherRegion | undefined;
}

/** A partition of another region. Each connection is to one of its servers: a stream and its acknowledgments reach the same one. */
export function regionSource(options: RegionSourceOptions): ImportSource {
	const { region, partition } = options;
	return {
		name: region,
		async dial(signal) {
			const deployment = options.deployment();
			if (deployment === undefined) {
				throw new ImportRefused(
					"Unreachable",
					`no deployment of the service in the region ${region} is known`,
				);
			}
			const { client, route } = callRegion(options, deployment);
			const call = { signal, timeoutMs: peeringLimits.callMs };
			return {
				async describe() {
					try {
						const { cluster, offer } = await client.getOffer({ route, partition }, call);
						return described(cluster, offer, { region, partition, deployment: deployment.uid });
					} catch (failure) {
						throw explained(failure, region);
					}
				},
				stream(request) {
					const stream = { protocolVersion, export: partition, ...request };
					return messagesOf(client.streamOffer({ route, stream }, { signal }));
				},
				acknowledge: (streamId, sequence) =>
					client.acknowledgeOffer({ route, streamId, sequence }, call),
				close() {},
			};
		},
	};
}

/** A client of one server of a region, chosen at random, and the route of its calls. */
export function callRegion({ own, regions, random }: RegionCalls, deployment: OtherRegion) {
	const { addresses, uid: toUid } = deployment;
	const address = addresses[Math.floor(random.next() * addresses.length)] ?? "";
	const client = createClient(RegionalCopyService, regions.connect(address));
	const { service, region } = own;
	const route: OfferRoute = create(OfferRouteSchema, { protocolVersion, service, region, toUid });
	return { client, route };
}

/** @throws ProtocolViolation. */
function described(
	cluster: string,
	offer: Parameters<typeof checkOffered>[0] | undefined,
	from: Pick<RegionPlace, "region" | "partition" | "deployment">,
): DescribedSource {
	if (offer === undefined || !isUlid(cluster)) {
		throw new ProtocolViolation("the region has sent a malformed offer");
	}
	const { incarnation } = checkOffered(offer);
	return {
		...{ offered: offer, cluster },
		place: { kind: "region", ...from, cluster, incarnation },
	};
}

/** Only NotFound says that the partition is not offered: the called server has said that it is of the deployment. */
function explained(failure: unknown, region: string): unknown {
	if (!(failure instanceof ConnectError)) {
		return failure;
	}
	switch (failure.code) {
		case Code.NotFound:
			return new ImportRefused("NotOffered", failure.rawMessage);
		case Code.Unimplemented:
			return new ImportRefused(
				"Refused",
				`the servers of the region ${region} are too old for regional copies`,
			);
		default:
			return failure;
	}
}

async function* messagesOf(
	responses: AsyncIterable<{ readonly message?: StreamResponse | undefined }>,
): AsyncGenerator<StreamResponse> {
	for await (const { message } of responses) {
		if (message === undefined) {
			throw new ProtocolViolation("the region has sent a message without content");
		}
		yield message;
	}
}

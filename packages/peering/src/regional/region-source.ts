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
}

/** What one partition of another region offers. */
export interface RegionSourceOptions extends RegionCalls {
	readonly region: string;
	readonly partition: string;
	/** The deployment of the region, as it is known now; `undefined` if it is not. */
	readonly deployment: () => OtherRegion | undefined;
	readonly random: Random;
}

/**
 * A partition of another region. Each connection is to one of its servers: a stream and its acknowledgments reach the same one.
 * It is chosen at random, and called again for as long as it responds, and its streams do not fail: servers of two releases
 * may offer different types, and then what one of them has sent is worth little to the other one.
 */
export function regionSource(options: RegionSourceOptions): ImportSource {
	const { region, partition } = options;
	let chosen: string | undefined;
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
			const { addresses } = deployment;
			const address =
				chosen !== undefined && addresses.includes(chosen)
					? chosen
					: oneOf(addresses, options.random);
			chosen = undefined;
			const { client, route } = callRegion(options, deployment, address);
			const call = { signal, timeoutMs: peeringLimits.callMs };
			return {
				async describe() {
					try {
						const { cluster, offer } = await client.getOffer({ route, partition }, call);
						const source = { region, partition, deployment: deployment.uid };
						const offered = described(cluster, offer, source);
						chosen = address;
						return offered;
					} catch (failure) {
						throw explained(failure, region);
					}
				},
				async *stream(request) {
					const stream = { protocolVersion, export: partition, ...request };
					chosen = undefined;
					try {
						for await (const message of messagesOf(
							client.streamOffer({ route, stream }, { signal }),
						)) {
							chosen = signal.aborted ? chosen : address;
							yield message;
						}
					} catch (failure) {
						if (!signal.aborted) {
							chosen = isAborted(failure) ? address : undefined;
						}
						throw failure;
					}
				},
				acknowledge: (streamId, sequence) =>
					client.acknowledgeOffer({ route, streamId, sequence }, call),
				close() {},
			};
		},
	};
}

/** One of the addresses, of which there is at least one. */
export function oneOf(addresses: readonly string[], random: Random): string {
	return addresses[Math.floor(random.next() * addresses.length)] ?? "";
}

/** A client of one server of a region, and the route of its calls. */
export function callRegion(
	{ own, regions }: RegionCalls,
	{ uid: toUid }: OtherRegion,
	address: string,
) {
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

/** Whether the server has ended a stream because what it offers has changed, which is no fault of it. */
function isAborted(failure: unknown): boolean {
	return failure instanceof ConnectError && failure.code === Code.Aborted;
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

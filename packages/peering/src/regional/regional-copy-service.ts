import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type { RegionalCopyService } from "@plinth/proto/gen/plinth/meta/v1/regional_copy_service_pb.js";
import { StreamRequestSchema } from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import type { Logger } from "@plinth/runtime";
import { explainFailure } from "../services/explain-failure.ts";
import type { OfferStreams } from "./offer-streams.ts";

/**
 * What deployments of the same service in other regions call. It authorizes nobody: the listener requires the credential of
 * deployments. It shows them what policies offer to their region, and takes nothing but acknowledgments.
 */
export function createRegionalCopyService(
	offers: OfferStreams,
	logger: Logger,
): ServiceImpl<typeof RegionalCopyService> {
	const explain = async <T>(work: () => Promise<T>): Promise<T> => {
		try {
			return await work();
		} catch (failure) {
			throw explainFailure(failure, logger);
		}
	};
	return {
		listOffers: ({ route }) =>
			explain(async () => {
				const { partitions, omitted } = await offers.list(await offers.authenticate(route));
				return { partitions: [...partitions], omitted };
			}),
		getOffer: ({ route, partition }) =>
			explain(async () => {
				const region = await offers.authenticate(route);
				const { uid, incarnation, generation, types } = await offers.offered(region, partition);
				return { cluster: uid, offer: { incarnation, generation, types: [...types] } };
			}),
		async *streamOffer({ route, stream = create(StreamRequestSchema) }, { signal }) {
			try {
				const region = await offers.authenticate(route);
				for await (const message of offers.open(region, stream, signal)) {
					yield { message };
				}
			} catch (failure) {
				throw explainFailure(failure, logger);
			}
		},
		acknowledgeOffer: ({ route, streamId, sequence }) =>
			explain(async () => {
				offers.acknowledge(await offers.authenticate(route), streamId, sequence);
				return {};
			}),
	};
}

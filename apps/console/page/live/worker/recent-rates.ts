import { durationMs } from "@bufbuild/protobuf/wkt";
import type { Overview } from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";

/** Rates are averages over so long, in milliseconds. */
const windowMs = 10_000;

/**
 * Averages the rates of overviews over the last ten seconds. A server measures each rate since its previous overview, about two
 * seconds before: work that comes in bursts would often have a rate of 0 while it goes on.
 */
export class RecentRates {
	/** The newest first. */
	#recent: readonly Overview[] = [];

	/** Adds the newest overview. Returns it with average rates. */
	add(overview: Overview): Overview {
		if (overview.rateInterval === undefined) {
			// The server has no rates: it has forgotten the overview before, or there was none.
			this.#recent = [];
			return overview;
		}
		const weights: number[] = [];
		let leftMs = windowMs;
		for (const each of [overview, ...this.#recent]) {
			const ms = each.rateInterval === undefined ? 0 : durationMs(each.rateInterval);
			weights.push(Math.min(ms, leftMs));
			leftMs -= Math.min(ms, leftMs);
			if (leftMs === 0) {
				break;
			}
		}
		this.#recent = [overview, ...this.#recent].slice(0, weights.length);
		const total = weights.reduce((sum, each) => sum + each, 0);
		return total === 0 ? overview : withRates(overview, this.#averageBy(weights, total));
	}

	#averageBy(weights: readonly number[], total: number): Average {
		return (rate) =>
			this.#recent.reduce((sum, each, at) => sum + (rate(each) ?? 0) * (weights[at] ?? 0), 0) /
			total;
	}
}

/** The average of a rate, which counts as 0 where an overview does not have it. */
type Average = (rate: (overview: Overview) => number | undefined) => number;

function withRates(overview: Overview, average: Average): Overview {
	const { storage, servers, types, controllers } = overview;
	return {
		...overview,
		...(storage && {
			storage: { ...storage, commitsPerSecond: average((of) => of.storage?.commitsPerSecond) },
		}),
		servers: servers.map((each) =>
			each.storage === undefined
				? each
				: {
						...each,
						storage: {
							...each.storage,
							commitsPerSecond: average(
								(of) =>
									of.servers.find(({ server }) => server?.name === each.server?.name)?.storage
										?.commitsPerSecond,
							),
						},
					},
		),
		types: types.map((each) => ({
			...each,
			writesPerSecond: average(
				(of) => of.types.find(({ type }) => type === each.type)?.writesPerSecond,
			),
		})),
		controllers: controllers.map((each) => {
			const same = (of: Overview) =>
				of.controllers.find(({ controller }) => controller?.name === each.controller?.name);
			return {
				...each,
				reconcilesPerSecond: average((of) => same(of)?.reconcilesPerSecond),
				failuresPerSecond: average((of) => same(of)?.failuresPerSecond),
			};
		}),
	};
}

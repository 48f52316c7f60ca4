import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Overview } from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";

/** Figures at one time, for sparklines. */
export interface OverviewSample {
	/** In milliseconds since the epoch. */
	readonly atMs: number;
	readonly commitsPerSecond: number;
	readonly reconcilesPerSecond: number;
	readonly failuresPerSecond: number;
	readonly queued: number;
	readonly watches: number;
	readonly writesPerSecond: Readonly<Record<string, number>>;
}

/** The figures of an overview. */
export function sampleOf({ takenAt, storage, controllers, types }: Overview): OverviewSample {
	return {
		atMs: takenAt === undefined ? 0 : timestampMs(takenAt),
		commitsPerSecond: storage?.commitsPerSecond ?? 0,
		reconcilesPerSecond: controllers.reduce((sum, each) => sum + each.reconcilesPerSecond, 0),
		failuresPerSecond: controllers.reduce((sum, each) => sum + each.failuresPerSecond, 0),
		queued: controllers.reduce(
			(sum, { controller }) =>
				sum + (controller?.requests?.live ?? 0) + (controller?.requests?.background ?? 0),
			0,
		),
		watches: Number(storage?.watches ?? 0n),
		writesPerSecond: Object.fromEntries(types.map((each) => [each.type, each.writesPerSecond])),
	};
}

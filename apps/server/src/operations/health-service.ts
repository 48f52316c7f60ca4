import { Code, ConnectError, type ServiceImpl } from "@connectrpc/connect";
import { type Clock, sleep } from "@plinth/runtime";
import {
	type Health,
	HealthCheckResponse_ServingStatus as Status,
} from "../gen/grpc/health/v1/health_pb.ts";

/** How often a watch of the health looks. */
const watchEveryMs = 500;

/** What the health service reports on. */
export interface HealthOptions {
	/** Full names of the services that there are. */
	readonly services: () => Iterable<string>;
	readonly isReady: () => boolean;
	readonly clock: Clock;
	/** Ends watches when the server stops, with its reason. */
	readonly streamsEnd: AbortSignal;
}

/** The standard health service of gRPC: all services are well when the server takes calls. */
export function createHealthService(options: HealthOptions): ServiceImpl<typeof Health> {
	const overall = () => (options.isReady() ? Status.SERVING : Status.NOT_SERVING);
	const statusOf = (service: string): Status => {
		const known = service === "" || [...options.services()].includes(service);
		return known ? overall() : Status.SERVICE_UNKNOWN;
	};
	return {
		check: ({ service }) => {
			const status = statusOf(service);
			if (status === Status.SERVICE_UNKNOWN) {
				throw new ConnectError(`there is no service ${service} here`, Code.NotFound);
			}
			return { status };
		},
		list: () => {
			const statuses = ["", ...options.services()].map(
				(service) => [service, { status: overall() }] as const,
			);
			return { statuses: Object.fromEntries(statuses) };
		},
		async *watch({ service }, { signal }) {
			const ended = AbortSignal.any([signal, options.streamsEnd]);
			let told: Status | undefined;
			for (;;) {
				const status = statusOf(service);
				if (status !== told) {
					told = status;
					yield { status };
				}
				await sleep(options.clock, watchEveryMs, ended);
			}
		},
	};
}

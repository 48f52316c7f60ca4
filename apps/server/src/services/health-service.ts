import { Code, ConnectError, type ServiceImpl } from "@connectrpc/connect";
import {
	type Health,
	HealthCheckResponse_ServingStatus as Status,
} from "../gen/grpc/health/v1/health_pb.ts";

/** Options of the health service. */
export interface HealthOptions {
	/** The full names of all services. */
	readonly services: () => Iterable<string>;
	readonly isReady: () => boolean;
}

/** Returns the status of a service by its full name, or of the server if the name is empty. */
export function healthStatus(options: HealthOptions): (service: string) => Status {
	return (service) => {
		const known = service === "" || [...options.services()].includes(service);
		if (!known) {
			return Status.SERVICE_UNKNOWN;
		}
		return options.isReady() ? Status.SERVING : Status.NOT_SERVING;
	};
}

/**
 * The standard health service of gRPC: all services are serving while the server is ready. `HealthWatches` serves its
 * streams.
 */
export function createHealthService(
	options: HealthOptions,
): Pick<ServiceImpl<typeof Health>, "check" | "list"> {
	const statusOf = healthStatus(options);
	return {
		check: ({ service }) => {
			const status = statusOf(service);
			if (status === Status.SERVICE_UNKNOWN) {
				throw new ConnectError(`service ${service} not found`, Code.NotFound);
			}
			return { status };
		},
		list: () => {
			const statuses = ["", ...options.services()].map(
				(service) => [service, { status: statusOf(service) }] as const,
			);
			return { statuses: Object.fromEntries(statuses) };
		},
	};
}

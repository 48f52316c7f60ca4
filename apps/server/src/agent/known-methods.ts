import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import type { ForwardedMethod, WatchMethod, WriteMethod } from "@plinth/forwarding";
import {
	BackupService,
	ControllerService,
	EventService,
	HistoryService,
	LeaseService,
	ResourceService,
	TypeService,
} from "@plinth/proto";
import { AgentCacheService } from "@plinth/proto/gen/plinth/agent/v1/agent_cache_service_pb.js";
import { PeeringService } from "@plinth/proto/gen/plinth/peering/v1/peering_service_pb.js";
import { DeploymentService } from "@plinth/proto/gen/plinth/schema/v1/deployment_service_pb.js";
import { ReferenceService } from "@plinth/proto/gen/plinth/schema/v1/reference_service_pb.js";
import { ServerService } from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";
import { Health } from "../gen/grpc/health/v1/health_pb.ts";
import { ServerReflection } from "../gen/grpc/reflection/v1/reflection_pb.ts";
import { ServerReflection as ServerReflectionV1Alpha } from "../gen/grpc/reflection/v1alpha/reflection_pb.ts";

const services: readonly DescService[] = [
	AgentCacheService,
	BackupService,
	ControllerService,
	DeploymentService,
	EventService,
	Health,
	HistoryService,
	LeaseService,
	PeeringService,
	ReferenceService,
	ResourceService,
	ServerReflection,
	ServerReflectionV1Alpha,
	ServerService,
	TypeService,
];

const byPath: ReadonlyMap<string, DescMethod> = new Map(
	services.flatMap((service) =>
		service.methods.map((method) => [`/${service.typeName}/${method.name}`, method] as const),
	),
);

/** The method of a path, if it is one of Plinth's own services; an agent does not know those of modules. */
export function knownMethod(path: string): DescMethod | undefined {
	return byPath.get(path);
}

/** What an agent must know of a method that it knows. */
export function forwardedMethod(method: DescMethod): ForwardedMethod {
	const watch = watches.get(method);
	const write = writes.get(method);
	return {
		isRepeatable: isRepeatable(method),
		isStream: method.methodKind !== "unary",
		hasPosition: method.parent === ResourceService,
		hasPages: method === ResourceService.method.list,
		...(watch && { watch }),
		...(write && { write }),
	};
}

const watches: ReadonlyMap<DescMethod, WatchMethod> = new Map<DescMethod, WatchMethod>([
	[ResourceService.method.watchList, "WatchList"],
	[ResourceService.method.watchSet, "WatchSet"],
]);

const writes: ReadonlyMap<DescMethod, WriteMethod> = new Map<DescMethod, WriteMethod>([
	[ResourceService.method.write, "Write"],
	[ResourceService.method.writeStatus, "WriteStatus"],
	[ResourceService.method.delete, "Delete"],
]);

/** Whether a call can be repeated without another effect, according to the proto of its method. */
function isRepeatable({ idempotency, methodKind }: DescMethod): boolean {
	return (
		// A stream of requests can't be sent again.
		(methodKind === "unary" || methodKind === "server_streaming") &&
		idempotency !== MethodOptions_IdempotencyLevel.IDEMPOTENCY_UNKNOWN
	);
}

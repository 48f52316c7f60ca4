import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { metaTypes } from "@plinth/db-constraint";
import { ResourceService } from "@plinth/proto";
import { SchemaMixinService } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { TypeRegistry } from "@plinth/resource";
import {
	correctConnectError,
	createResourceService,
	deploymentAuthorizer,
} from "@plinth/resource-service";
import { createRpcRouter, type RpcRouter } from "@plinth/rpc-server";
import type { Logger, Runtime } from "@plinth/runtime";
import type { StorageBackend } from "@plinth/storage";
import { logFaults } from "../listener/log-faults.ts";

/** Options of `createInternalRouter`. */
export interface InternalRouterOptions {
	readonly mixin: ServiceImpl<typeof SchemaMixinService>;
	/** Whether this is a meta deployment, which also serves the meta types. */
	readonly isMeta: boolean;
	readonly store: StorageBackend;
	readonly runtime: Runtime;
	readonly logger: Logger;
	readonly messageBytes: number;
	/** Throws if a call does not carry the credential. */
	readonly check: (call: HandlerContext) => void;
	/** Ends streams with its reason. */
	readonly streamsEnd: AbortSignal;
	/** Ends all calls with its reason. */
	readonly callsEnd: AbortSignal;
}

/**
 * The interface for other deployments: the mixin service and, at meta deployments, the resource service for the
 * meta types. The credential grants all rights on it.
 */
export function createInternalRouter(options: InternalRouterOptions): RpcRouter {
	const { mixin, isMeta, store, runtime, logger, check } = options;
	const router = createRpcRouter({
		clock: runtime.clock,
		readMaxBytes: options.messageBytes,
		shutdownSignal: options.callsEnd,
		streamsEnd: options.streamsEnd,
		requestGate: check,
		onFault: logFaults(logger),
		correctError: correctConnectError,
	});
	router.service(SchemaMixinService, mixin);
	if (isMeta) {
		router.service(
			ResourceService,
			createResourceService({
				backend: store,
				registry: new TypeRegistry(metaTypes),
				runtime,
				logger,
				authorizer: deploymentAuthorizer,
			}),
		);
	}
	return router;
}

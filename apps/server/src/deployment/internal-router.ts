import {
	type ConnectRouter,
	createConnectRouter,
	type HandlerContext,
	type Interceptor,
	type ServiceImpl,
} from "@connectrpc/connect";
import { metaTypes } from "@plinth/db-constraint";
import { ResourceService } from "@plinth/proto";
import { SchemaMixinService } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { TypeRegistry } from "@plinth/resource";
import {
	correctConnectErrors,
	createResourceService,
	deploymentAuthorizer,
} from "@plinth/resource-service";
import type { Logger, Runtime } from "@plinth/runtime";
import type { StorageBackend } from "@plinth/storage";

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
	readonly interceptors: readonly Interceptor[];
	readonly callsEnd: AbortSignal;
}

/**
 * The interface for other deployments: the mixin service and, at meta deployments, the resource service for the
 * meta types. The credential grants all rights on it.
 */
export function createInternalRouter(options: InternalRouterOptions): ConnectRouter {
	const { mixin, isMeta, store, runtime, logger, check } = options;
	const router = createConnectRouter({
		readMaxBytes: options.messageBytes,
		shutdownSignal: options.callsEnd,
		requestGate: (call) => {
			correctConnectErrors(call);
			check(call);
		},
		interceptors: [...options.interceptors],
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

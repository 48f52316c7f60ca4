import type { ServiceImpl } from "@connectrpc/connect";
import type { SchemaMixinService } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import type { CallerAuthenticator } from "@plinth/resource-service";
import { type Logger, type Runtime, silentLogger, systemRuntime } from "@plinth/runtime";
import type { StorageBackend } from "@plinth/storage";
import { createConstraintStore } from "../commit/constraint-store.ts";
import { Guards } from "../commit/guards.ts";
import { Turns } from "../commit/turns.ts";
import { DroppedDeployments } from "../protocol/dropped-deployments.ts";
import { HintsChannel } from "../protocol/hints-channel.ts";
import { HolderQuery } from "../protocol/holder-query.ts";
import { createSchemaMixinService } from "../protocol/schema-mixin-service.ts";
import type { Environment } from "../registry/environment.ts";
import { SchemaPass } from "../schema/schema-pass.ts";
import type { ServiceDescriptor } from "../schema/service-descriptor.ts";
import { HeldDeletions } from "../shadow/held-deletions.ts";
import { ShadowIndex } from "../shadow/shadow-index.ts";
import { WaitingAges } from "../shadow/waiting-ages.ts";
import type { ConstraintContext } from "./constraint-context.ts";
import { type ConstraintLimits, defaultConstraintLimits } from "./limits.ts";
import { MeasuredReferences, type ReferenceMetrics } from "./metrics.ts";

/** Options of `createConstraints`. */
export interface ConstraintsOptions {
	/** The storage to decorate. */
	readonly backend: StorageBackend;
	readonly descriptor: ServiceDescriptor;
	readonly environment: Environment;
	/** Authenticates the callers that other deployments send with their references. Default: all are accepted. */
	readonly callers?: CallerAuthenticator;
	/** Default: the system runtime. */
	readonly runtime?: Runtime;
	/** Default: no logging. */
	readonly logger?: Logger;
	/** Overrides of `defaultConstraintLimits`. */
	readonly limits?: Partial<ConstraintLimits>;
}

/** The constraints of one server. */
export interface Constraints {
	/** The decorated storage: commits through it maintain the integrity of references. */
	readonly store: StorageBackend;
	/** The service that other deployments call. */
	readonly service: ServiceImpl<typeof SchemaMixinService>;
	readonly context: ConstraintContext;
	readonly holderQuery: HolderQuery;
	readonly hints: HintsChannel;
	/** Activates the schema of references. Must be begun before the first commit. */
	readonly schemaPass: SchemaPass;
	/** The current measurements. The cost does not grow with the number of resources. */
	metrics(): ReferenceMetrics;
	/** Follows the shadows until the signal aborts. Deletions and holder queries wait until it runs. */
	run(signal: AbortSignal): Promise<void>;
}

/** Decorates a storage with constraints. */
export function createConstraints(options: ConstraintsOptions): Constraints {
	const { backend, descriptor, environment } = options;
	const runtime = options.runtime ?? systemRuntime;
	const logger = options.logger ?? silentLogger;
	const limits = { ...defaultConstraintLimits, ...options.limits };
	const index = new ShadowIndex(backend, runtime, logger);
	const guards = new Guards(backend, runtime);
	const hints = new HintsChannel({ environment, limits, index, logger, clock: runtime.clock });
	const context: ConstraintContext = {
		backend,
		descriptor,
		environment,
		index,
		deletions: new HeldDeletions(index),
		ages: new WaitingAges(index, runtime.clock),
		guards,
		dropped: new DroppedDeployments({ backend, index, runtime }),
		establishments: new Turns(),
		runtime,
		logger,
		limits,
		hints,
		callers: options.callers,
	};
	const measured = new MeasuredReferences(context);
	const holderQuery = new HolderQuery(context, measured.countQueries);
	return {
		store: createConstraintStore(context, holderQuery),
		service: createSchemaMixinService(context),
		context,
		holderQuery,
		hints,
		schemaPass: new SchemaPass(context),
		metrics: () => measured.read(),
		run: (signal) => index.run(signal),
	};
}

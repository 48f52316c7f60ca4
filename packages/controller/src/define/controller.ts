import type { DescMessage } from "@bufbuild/protobuf";
import type { AnyIndex, Queries } from "@plinth/cache";
import type { ID } from "@plinth/proto";
import type { ResourceType } from "@plinth/resource";
import type { BackoffPolicy } from "@plinth/runtime";
import { anyChange, type ChangePredicate } from "./change.ts";
import type { InitializeContext, ReconcileContext } from "./context.ts";
import type { Requeue } from "./requeue.ts";
import type { CustomWatch, ResourceWatch } from "./watch.ts";

/**
 * Which servers of a cluster run a controller:
 *
 * - `singleton`: the one that holds the lease;
 * - `sharded`: all of them, each for its part of the managed resources. Each resource is in one shard, by a hash of its
 *   name, and each shard belongs to one server, which holds its lease: no resource is reconciled by two servers at a
 *   time. When servers come or go, shards move: work on them ends at their old server, then all their resources are
 *   reconciled at the new one, whose cache contains what the old one wrote. `initialize` and custom watches run on
 *   each server, and their writes are not fenced; an event for a resource that is not stored is lost if its shard moves
 *   at that moment. A requeue does not move along;
 * - `each-server`: all of them, each for all resources.
 */
export type Placement = "singleton" | "sharded" | "each-server";

/** A request to reconcile one resource. */
export interface ReconcileRequest {
	/**
	 * The resource to reconcile, with the newest uid observed. It may have been deleted, and the
	 * deletion may be the reason for the request: look it up in the cache.
	 */
	readonly id: ID;
}

/** The declaration of a controller by an application. */
export interface ControllerOptions<Desc extends DescMessage, Q extends Queries> {
	/** Unique among the controllers of a server; also the key of the statuses that it writes. */
	readonly name: string;
	/** The type whose resources it reconciles. */
	readonly manages: ResourceType<Desc>;
	/** Which changes of managed resources enqueue them; all changes by default. */
	readonly when?: ChangePredicate;
	/** Indexes of its cache, of the managed and the watched types. */
	readonly indexes?: readonly AnyIndex[];
	/** Queries of its cache. */
	readonly queries?: Q;
	/** The other inputs that its managed resources depend on. */
	readonly watches?: readonly (ResourceWatch | CustomWatch)[];
	/** `singleton` by default. */
	readonly placement?: Placement;
	/**
	 * Names the leases of its shards, if it is sharded; `name` by default. Controllers with one name, such as two versions
	 * of a controller, divide the resources among all servers that run one of them.
	 */
	readonly leaseName?: string;
	/** How many resources it reconciles concurrently, never the same one twice; 1 by default. */
	readonly concurrency?: number;
	/** After how many milliseconds a reconcile is reported as still running; 1 minute by default. */
	readonly slowReconcileMs?: number;
	/**
	 * The time limit of one reconcile in milliseconds; 5 minutes by default. When it is exceeded, the
	 * signal of the reconcile aborts and it counts as failed.
	 */
	readonly reconcileTimeoutMs?: number;
	/** The interval at which each managed resource is reconciled again, in milliseconds; 8 hours by default. */
	readonly resyncMs?: number | "never";
	/** Delays of requests that fail; 5 ms to 1000 s by default. */
	readonly backoff?: BackoffPolicy;
	/** Called at each start of a run, before the cache is primed. If it fails, the run fails. */
	initialize?(context: InitializeContext): Promise<void> | void;
	/**
	 * Called before work begins on shards that the server has gained. It resolves when all that reconciles read, besides
	 * the cache and the client, contains what was committed before the call. If it fails, the run fails.
	 */
	catchUp?(signal: AbortSignal): Promise<void>;
	/** Brings one managed resource to its desired state. */
	// biome-ignore lint/suspicious/noConfusingVoidType: a reconciler that needs no requeue returns nothing.
	reconcile(context: ReconcileContext<Q>, request: ReconcileRequest): Promise<Requeue | void>;
}

/** A controller with all defaults applied, as the manager runs it. */
export interface Controller extends ControllerOptions<DescMessage, Queries> {
	readonly when: ChangePredicate;
	readonly indexes: readonly AnyIndex[];
	readonly queries: Queries;
	readonly watches: readonly (ResourceWatch | CustomWatch)[];
	readonly placement: Placement;
	readonly concurrency: number;
	readonly slowReconcileMs: number;
	readonly reconcileTimeoutMs: number;
	readonly resyncMs: number | "never";
	readonly backoff: BackoffPolicy;
}

const defaults = {
	when: anyChange,
	indexes: [],
	queries: {},
	watches: [],
	placement: "singleton",
	concurrency: 1,
	slowReconcileMs: 60_000,
	reconcileTimeoutMs: 5 * 60_000,
	resyncMs: 8 * 3_600_000,
	backoff: { baseMs: 5, maxMs: 1_000_000 },
} as const;

/** Declares a controller. It is validated when it is registered. */
export function defineController<
	Desc extends DescMessage,
	Q extends Queries = Record<never, never>,
>(options: ControllerOptions<Desc, Q>): Controller {
	return Object.freeze({ ...defaults, ...options });
}

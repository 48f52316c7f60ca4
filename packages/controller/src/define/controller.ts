import type { DescMessage } from "@bufbuild/protobuf";
import type { AnyIndex, Queries } from "@plinth/cache";
import type { ID } from "@plinth/proto";
import type { ResourceType } from "@plinth/resource";
import type { BackoffPolicy } from "@plinth/runtime";
import { anyChange, type ChangePredicate } from "./change.ts";
import type { InitializeContext, ReconcileContext } from "./context.ts";
import type { Requeue } from "./requeue.ts";
import type { CustomWatch, ResourceWatch } from "./watch.ts";

/** Which servers of a cluster run a controller: the one that holds the lease, or each. */
export type Placement = "singleton" | "each-server";

/** What a reconciler is asked for. */
export interface ReconcileRequest {
	/**
	 * The resource to bring to its desired state, with the newest uid that was seen. It may have
	 * been deleted since, or because of that be in need of cleaning up: the cache knows.
	 */
	readonly id: ID;
}

/** A controller, as an application declares it. */
export interface ControllerOptions<Desc extends DescMessage, Q extends Queries> {
	/** Names the controller among all of a server, and its entry in the statuses that it writes. */
	readonly name: string;
	/** The type whose resources it reconciles. */
	readonly manages: ResourceType<Desc>;
	/** Which changes of managed resources queue them; all of them by default. */
	readonly when?: ChangePredicate;
	/** Indexes of its cache, of the managed and the watched types. */
	readonly indexes?: readonly AnyIndex[];
	/** Queries of its cache. */
	readonly queries?: Q;
	/** What else its managed resources depend on. */
	readonly watches?: readonly (ResourceWatch | CustomWatch)[];
	/** `singleton` by default. */
	readonly placement?: Placement;
	/** How many resources it reconciles at once, never one of them twice; 1 by default. */
	readonly concurrency?: number;
	/** After how many milliseconds a reconcile is reported as still running; 1 minute by default. */
	readonly reconcileReportMs?: number;
	/**
	 * How long one reconcile may take, in milliseconds; 5 minutes by default. Then its signal aborts, and
	 * it counts as failed.
	 */
	readonly reconcileLimitMs?: number;
	/** How often each managed resource is reconciled again, in milliseconds; 8 hours by default. */
	readonly resyncMs?: number | "never";
	/** Delays of requests that fail; 5 ms to 1000 s by default. */
	readonly backoff?: BackoffPolicy;
	/** Called at each start, before anything is cached. Its failure is a failed start. */
	initialize?(context: InitializeContext): Promise<void> | void;
	/** Brings one managed resource to its desired state. */
	// biome-ignore lint/suspicious/noConfusingVoidType: a reconciler that asks for nothing returns nothing.
	reconcile(context: ReconcileContext<Q>, request: ReconcileRequest): Promise<Requeue | void>;
}

/** A controller, as the manager runs it. */
export interface Controller extends ControllerOptions<DescMessage, Queries> {
	readonly when: ChangePredicate;
	readonly indexes: readonly AnyIndex[];
	readonly queries: Queries;
	readonly watches: readonly (ResourceWatch | CustomWatch)[];
	readonly placement: Placement;
	readonly concurrency: number;
	readonly reconcileReportMs: number;
	readonly reconcileLimitMs: number;
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
	reconcileReportMs: 60_000,
	reconcileLimitMs: 5 * 60_000,
	resyncMs: 8 * 3_600_000,
	backoff: { baseMs: 5, maxMs: 1_000_000 },
} as const;

/** Declares a controller. What is wrong with it is said when it is registered. */
export function defineController<
	Desc extends DescMessage,
	Q extends Queries = Record<never, never>,
>(options: ControllerOptions<Desc, Q>): Controller {
	return Object.freeze({ ...defaults, ...options });
}

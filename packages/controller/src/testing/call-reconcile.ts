import { type Cache, cloningView } from "@plinth/cache";
import type { ID } from "@plinth/proto";
import { type EventRecorder, idOf, nameKey, noEvents } from "@plinth/resource";
import type { Logger, Runtime } from "@plinth/runtime";
import type { ResourceClient } from "../client/resource-client.ts";
import type { Controller } from "../define/controller.ts";
import type { Requeue } from "../define/requeue.ts";
import { Task } from "../queue/task.ts";
import { WriteChains } from "../queue/write-chains.ts";
import { defaultControllerLimits } from "../run/limits.ts";
import { ReconcileTally } from "../run/reconcile-tally.ts";
import { WorkContext } from "../run/work-context.ts";

/** The options of one call of a reconciler. */
export interface CallReconcileOptions {
	/** The resource to reconcile; omitted units of tenancy are `default`. */
	readonly id: ID;
	/** The controller's cache. */
	readonly cache: Cache;
	/** The resource service; it must copy requests and responses. */
	readonly client: ResourceClient;
	readonly runtime: Runtime;
	readonly logger: Logger;
	/** Records nothing by default. */
	readonly events?: EventRecorder;
}

/**
 * Calls a controller's reconciler once, as a run does, but without the rest of a run (watches, queues,
 * leases, time limits). Settles after all its writes have settled.
 */
export async function callReconcile(
	controller: Controller,
	options: CallReconcileOptions,
): Promise<Requeue | undefined> {
	const { id, cache, client, runtime, logger, events = noEvents } = options;
	const { manages } = controller;
	const environment = {
		controller,
		client,
		cloningClient: client,
		runtime,
		logger,
		limits: defaultControllerLimits,
		tally: new ReconcileTally(),
		events,
		chains: new WriteChains(runtime.clock),
		onEndlessChain: () => {},
	};
	const hold = { fence: undefined };
	const scope = { environment, hold, fence: undefined, refusal: () => undefined };
	const requested = idOf(manages, id.name, id.tenancy, id.uid);
	const task = new Task(nameKey(requested));
	const reconciled = cache.get(manages, requested)?.resource.id ?? requested;
	const views = { cache: cloningView(cache), shared: cache };
	const context = new WorkContext(scope, task, views, () => {}, reconciled);
	try {
		return (await controller.reconcile(context, { id: reconciled })) ?? undefined;
	} finally {
		await context.client.close();
	}
}

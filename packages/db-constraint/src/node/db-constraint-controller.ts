import { type Controller, defineController, requeueAfter, watchEvents } from "@plinth/controller";
import {
	Lifecycle,
	type Shadow,
	type Source,
	type Task,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import type { Constraints } from "../constraints.ts";
import { holders } from "../shadow.ts";
import { ResourceShadow, recordId, type StoredShadow } from "../shadow-records.ts";
import { ControllerNode } from "./controller-node.ts";
import { DeletionInbox } from "./deletion-inbox.ts";
import { type Handled, soonest } from "./handled.ts";
import { Lanes } from "./lanes.ts";
import { NameChannel } from "./name-channel.ts";
import type { Deletion } from "./subscribed-deleting-handler.ts";

/** How many passes are under way at once, in all and for one deployment. They mostly wait for answers. */
const passes = { all: 1_000, perDeployment: 100 } as const;

/** What the controller is made of. */
export interface DbConstraintOptions {
	/** Names it among the controllers of the server. */
	readonly name: string;
	readonly constraints: Constraints;
	/** Called when its run begins to take deletions, with where to put them; until what it returns is called. */
	readonly whileRunning: (take: (deletion: Deletion) => void) => () => void;
}

/**
 * `DbConstraintCtrl`: a node on the controller runtime. It manages shadows; what else is to be looked
 * at comes as names of shadows through one channel:
 *
 *     shadow changed ───────────────────────────────────────────┐
 *     deletion seen ──▶ inbox, by the target's name ─┐           ▼
 *     hint, owner to be checked ─────────────────────┼─▶ names ─▶ reconcile ─▶ lanes ─▶ node
 *     room in a lane ────────────────────────────────┘                           └─▶ parked
 *
 * The target of a deletion is kept elsewhere: there is no shadow of its name here, but its requests are
 * keyed by that name, so that each is worked on once at a time.
 */
export function createDbConstraintController({
	name,
	constraints,
	whileRunning,
}: DbConstraintOptions): Controller {
	const { context, asking, store, hints } = constraints;
	const { environment, index } = context;
	const inbox = new DeletionInbox();
	const names = new NameChannel();
	const lanes = new Lanes(passes.perDeployment, (task) => names.put(task));
	const node = new ControllerNode({ context, asking, store, queue: (each) => names.put(each) });

	function take(deletion: Deletion): void {
		const at = inbox.add(deletion);
		if (at !== undefined) {
			names.put(at);
		}
	}

	function takeOwn({ shadow }: StoredShadow): void {
		if (shadow.lifecycle === Lifecycle.DELETING && shadow.resource !== undefined) {
			const { uid } = environment.self;
			take({ deploymentUid: uid, target: shadow.resource, targetUid: shadow.uid });
		}
	}

	function listen(): () => void {
		const stops = [
			index.onChange((stored, change) => {
				if (change === "stored") {
					takeOwn(stored);
				}
			}),
			hints.addTaker({
				askSoon(shadow, deploymentUid) {
					node.hint(shadow, deploymentUid);
					names.put(shadow);
				},
				deleting: (deploymentUid, target, targetUid) => take({ deploymentUid, target, targetUid }),
			}),
			node.followEnvironment(),
			whileRunning(take),
		];
		for (const stored of index.all()) {
			takeOwn(stored);
		}
		return () => {
			for (const stop of stops) {
				stop();
			}
		};
	}

	async function pass(at: string, deletions: readonly Deletion[]): Promise<Handled> {
		const results = [await node.handleShadow(at)];
		for (const deletion of deletions) {
			const handled = await node.handleDeletion(deletion);
			if (handled.againAfterMs === undefined) {
				inbox.remove(deletion);
			}
			results.push(handled);
		}
		return soonest(...results);
	}

	return defineController({
		name,
		manages: ResourceShadow,
		concurrency: passes.all,
		backoff: { baseMs: 50, maxMs: 10_000 },
		watches: [
			watchEvents("references", {
				async *source({ signal }) {
					const stop = listen();
					try {
						for await (const at of names.names(signal)) {
							yield { key: at, event: at };
						}
					} finally {
						stop();
					}
				},
				map: (_context, at) => [recordId(at)],
			}),
		],
		async reconcile(_context, { id }) {
			const deletions = inbox.of(id.name);
			const leave = lanes.enter(id.name, lanesOf(context, index.get(id.name)?.shadow, deletions));
			if (leave === undefined) {
				// It is named when there is room. The delay is for rooms that nobody named has taken.
				return requeueAfter(context.limits.askAgainMs);
			}
			try {
				const { againAfterMs } = await pass(id.name, deletions);
				return againAfterMs === undefined ? undefined : requeueAfter(againAfterMs);
			} finally {
				leave();
			}
		},
	});
}

/** The deployments, by uid, that a pass may have to wait for; where there is none, this one. */
function lanesOf(
	{ environment, descriptor }: Constraints["context"],
	shadow: Shadow | undefined,
	deletions: readonly Deletion[],
): ReadonlySet<string> {
	const lanes = new Set(deletions.map(({ deploymentUid }) => deploymentUid));
	if (shadow !== undefined) {
		// A deletion waits for all that hold the resource, and for none of its tasks.
		const asked =
			shadow.lifecycle === Lifecycle.DELETING
				? holders(shadow)
				: [...shadow.sources.flatMap(tentativeAt), ...shadow.tasks.flatMap(confirmedAt)];
		for (const { uid } of asked) {
			lanes.add(uid);
		}
		for (const { owner } of shadow.metaOwners) {
			if (owner !== undefined) {
				const service = descriptor.serviceOfGroup(owner.group);
				const keeper = environment.findOwner(owner.group, service, owner.region);
				lanes.add(keeper?.uid ?? "");
			}
		}
	}
	return lanes.size === 0 ? new Set([environment.self.uid]) : lanes;
}

function tentativeAt({ deployment, tentative }: Source) {
	return tentative && deployment !== undefined ? [deployment] : [];
}

function confirmedAt({ task }: Task) {
	return task.case === "confirm" && task.value.deployment !== undefined
		? [task.value.deployment]
		: [];
}

import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import {
	type Controller,
	cacheList,
	contentChanged,
	defineController,
	type ReconcileContext,
	requeueAfter,
	watch,
} from "@plinth/controller";
import type { ConditionSchema, Resource } from "@plinth/proto";
import { checksByWorkload } from "../indexes.ts";
import { HealthCheck } from "../types/health-check.ts";
import { Workload } from "../types/workload.ts";
import { healthCondition, proberName, unknownCondition } from "./health.ts";
import { probeWithin } from "./probe-within.ts";
import type { Prober } from "./prober.ts";
import { addressOf, targetOf } from "./target.ts";

/** The number of concurrent probes, so that a slow target does not delay other checks. */
const concurrency = 64;

/**
 * Probes the workload of each check at the check's interval, and immediately after a change of either. It writes the
 * result to the status of the check.
 */
export function createProbeController(prober: Prober): Controller {
	return defineController({
		name: proberName,
		manages: HealthCheck,
		when: contentChanged,
		indexes: [checksByWorkload],
		watches: [watch(Workload, { map: cacheList(checksByWorkload), when: contentChanged })],
		concurrency,
		async reconcile(ctx, { id }) {
			const check = ctx.cache.get(HealthCheck, id);
			const owner = check?.resource.owner;
			if (check === undefined || owner === undefined) {
				return;
			}
			const workload = ctx.cache.get(Workload, owner);
			if (workload === undefined || workload.resource.id?.uid !== owner.uid) {
				const condition = unknownCondition("NoWorkload", `workload ${owner.name} is gone`);
				await writeCondition(ctx, check.resource, condition);
				return;
			}
			const target = targetOf(check.data, workload.data);
			if (target === undefined) {
				const condition = unknownCondition("NoPort", `workload ${owner.name} has no such port`);
				await writeCondition(ctx, check.resource, condition);
				return;
			}
			const result = await probeWithin(prober, target, check.data.timeoutMs, ctx.clock, ctx.signal);
			const condition = healthCondition(workload.resource, addressOf(target), result);
			const exists = await writeCondition(ctx, check.resource, condition);
			return exists ? requeueAfter(check.data.intervalMs) : undefined;
		},
	});
}

/** Writes the status of a check. Resolves to whether the check exists: one that was deleted meanwhile is no failure. */
async function writeCondition(
	ctx: Pick<ReconcileContext, "writeStatusIfChanged">,
	check: Resource,
	condition: MessageInitShape<typeof ConditionSchema>,
): Promise<boolean> {
	try {
		await ctx.writeStatusIfChanged(check, { conditions: [condition] });
		return true;
	} catch (error) {
		if (error instanceof ConnectError && error.code === Code.NotFound) {
			return false;
		}
		throw error;
	}
}

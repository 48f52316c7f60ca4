import { Backoff } from "@plinth/runtime";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { routeTo } from "../protocol/holder-query.ts";
import type { Deletion } from "./subscribed-deleting-handler.ts";

/** The backoff after which a broken watch restarts. */
const restart = { baseMs: 200, maxMs: 10_000 } as const;

/**
 * Watches the deletions of a deployment until the signal aborts. A broken watch restarts with all deletions
 * that are in progress by then.
 */
export async function followDeletions(
	context: Pick<ConstraintContext, "descriptor" | "environment" | "runtime" | "logger">,
	deploymentUid: string,
	onDeletion: (deletion: Deletion) => void,
	signal: AbortSignal,
): Promise<void> {
	const { environment, runtime, logger } = context;
	const { clock, random } = runtime;
	const backoff = new Backoff({ ...restart, clock, random });
	while (!signal.aborted) {
		try {
			const version = versionOf(context, deploymentUid);
			const route = routeTo(context, deploymentUid);
			const events = environment
				.client(deploymentUid)
				.watchImportedServiceDeletions({ route, version }, { signal });
			for await (const { event } of events) {
				backoff.reset();
				if (event.case === "deletion" && event.value.target !== undefined) {
					const { target, targetUid } = event.value;
					onDeletion({ deploymentUid, target, targetUid });
				}
			}
		} catch (failure) {
			if (!signal.aborted) {
				logger.debug({ err: failure, deployment: deploymentUid }, "a watch of deletions broke");
			}
		}
		await backoff.wait(signal).catch(() => {});
	}
}

/** The version of the other deployment's API that this service uses. For its operators: deletions are told in any case. */
function versionOf(
	{ descriptor, environment }: Pick<ConstraintContext, "descriptor" | "environment">,
	deploymentUid: string,
): string {
	const { self } = environment;
	const service = environment.byUid(deploymentUid)?.service;
	const imported = descriptor.imports(self.version).find((each) => each.service === service);
	return imported?.version ?? (service === self.service ? self.version : "");
}

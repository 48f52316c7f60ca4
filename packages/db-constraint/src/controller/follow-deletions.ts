import { create } from "@bufbuild/protobuf";
import {
	type ReferencedTypes,
	ReferencedTypesSchema,
} from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { Backoff } from "@plinth/runtime";
import type { ConstraintContext, Deletion } from "../node/constraint-context.ts";
import { routeTo } from "../protocol/holder-query.ts";
import { schemaNumber } from "../schema/descriptor-record.ts";

type FollowContext = Pick<
	ConstraintContext,
	"backend" | "descriptor" | "environment" | "index" | "runtime" | "logger"
>;

/** The backoff after which a broken watch restarts. */
const restart = { baseMs: 200, maxMs: 10_000 } as const;

/**
 * Watches the deletions of a deployment until the signal aborts, and learns which of its servers run. A broken watch
 * restarts with all deletions that are in progress by then.
 */
export async function followDeletions(
	context: FollowContext,
	deploymentUid: string,
	onDeletion: (deletion: Deletion) => void,
	signal: AbortSignal,
): Promise<void> {
	const { environment, runtime, logger } = context;
	const { clock, random, scheduler } = runtime;
	const backoff = new Backoff({ ...restart, clock, random });
	while (!signal.aborted) {
		try {
			const version = versionOf(context, deploymentUid);
			const route = routeTo(context, deploymentUid);
			const references = await referencesTo(context, deploymentUid);
			const events = environment
				.client(deploymentUid)
				.watchImportedServiceDeletions(
					{ route, version, ...(references && { references }) },
					{ signal },
				);
			for await (const { event } of events) {
				backoff.reset();
				if (event.case === "endOfSnapshot") {
					warnOfUnserved(context, deploymentUid, references?.types ?? [], event.value.servedTypes);
				}
				if (event.case === "servers") {
					environment.learnServers?.(deploymentUid, event.value.endpoints);
				}
				if (event.case === "deletion" && event.value.target !== undefined) {
					const { target, targetUid } = event.value;
					onDeletion({ deploymentUid, target, targetUid });
				}
				// Many may be in progress when the watch begins.
				await scheduler.turn();
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

/**
 * The types of the other deployment that this code references, and the number of its schema. `undefined` if that is not
 * known, or another schema is active.
 */
async function referencesTo(
	context: FollowContext,
	deploymentUid: string,
): Promise<ReferencedTypes | undefined> {
	const { descriptor, environment } = context;
	const service = environment.byUid(deploymentUid)?.service;
	const schema = service === undefined ? 0n : await schemaNumber(context);
	return service === undefined || schema === 0n
		? undefined
		: create(ReferencedTypesSchema, { types: [...descriptor.referencedTypes(service)], schema });
}

function warnOfUnserved(
	{ environment, logger }: FollowContext,
	deploymentUid: string,
	types: readonly string[],
	servedTypes: readonly string[],
): void {
	const missing =
		servedTypes.length === 0 ? [] : types.filter((type) => !servedTypes.includes(type));
	if (missing.length > 0) {
		const deployment = environment.byUid(deploymentUid)?.name ?? deploymentUid;
		logger.warn(
			{ deployment, types: missing },
			"new references by types that it does not serve are refused",
		);
	}
}

import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import type { ID, Resource } from "@plinth/proto";
import {
	PlanDeletionResponse_Effect_Kind as Kind,
	type ListReferencesResponse,
	ListReferencesResponseSchema,
	PlanDeletionResponse_Outcome as Outcome,
	type PlanDeletionResponse,
	type PlanDeletionResponse_Effect,
	PlanDeletionResponse_EffectSchema,
	PlanDeletionResponseSchema,
	type ReferenceService,
} from "@plinth/proto/gen/plinth/schema/v1/reference_service_pb.js";
import { type Caller, finalizersOf, isMarkedForDeletion } from "@plinth/resource";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { isInMarkedTenancy } from "../protocol/holder-decision.ts";
import { keyOf } from "../shadow/resource-key.ts";
import {
	deployedOf,
	holders,
	mergeRules,
	referencesFinalizer,
	shadowName,
} from "../shadow/shadow.ts";
import { readShadow } from "../shadow/shadow-records.ts";
import { allHolders } from "./all-holders.ts";
import { type DeletionPlan, type Effect, type Fate, planDeletion } from "./deletion-plan.ts";

/** Options of the service. */
export interface ReferenceServiceOptions {
	/** Reads a resource with the rights of the caller. @throws ConnectError if the caller may not, or there is none. */
	readonly read: (id: ID | undefined, call: HandlerContext) => Promise<Resource>;
	/** The caller who is told about other resources; `undefined` for one that may read all. */
	readonly callerOf: (call: HandlerContext) => Promise<Caller | undefined>;
}

/** How many resources a response names. */
const named = 1_000;

/** How many holders are described by one call to a deployment. */
const describedPerCall = 1_000;

/** The service that tells users about references. */
export function createReferenceService(
	context: ConstraintContext,
	{ read, callerOf }: ReferenceServiceOptions,
): ServiceImpl<typeof ReferenceService> {
	return {
		async listReferences({ id }, call) {
			const resource = await read(id, call);
			return listReferences(context, resource, await callerOf(call), call.signal);
		},
		async planDeletion({ id }, call) {
			const resource = await read(id, call);
			return planOf(context, resource, await callerOf(call), call.signal);
		},
	};
}

async function listReferences(
	context: ConstraintContext,
	resource: Resource,
	caller: Caller | undefined,
	signal: AbortSignal,
): Promise<ListReferencesResponse> {
	const { key, uid, shadow } = await shadowOf(context, resource);
	const home = deployedOf(context.environment.self);
	const held = { key, uid, home, holders: shadow === undefined ? [] : holders(shadow) };
	const [found] = await allHolders(context, [held], caller, describedPerCall, signal);
	const all = found?.holders.map(({ holder }) => holder) ?? [];
	const shown = all.filter(({ isHidden }) => !isHidden);
	return create(ListReferencesResponseSchema, {
		targets: (shadow?.outgoing ?? []).map(({ path, target, rule, targetUid }) => ({
			...{ path, rule, isMissing: targetUid === "" },
			...(target && { resource: target }),
		})),
		incoming: shown.slice(0, named).map((each) => ({
			...(each.resource && { resource: each.resource }),
			uid: each.uid,
			paths: each.uses.map(({ path }) => path),
			rules: mergeRules(each.uses.map(({ rule }) => rule)),
			isOwnee: each.isOwnee || each.isOwned,
		})),
		hidden: all.length - shown.length,
		hasMore: (found?.hasMore ?? false) || shown.length > named,
		unknown: [...(found?.unknown ?? [])],
	});
}

async function planOf(
	context: ConstraintContext,
	resource: Resource,
	caller: Caller | undefined,
	signal: AbortSignal,
): Promise<PlanDeletionResponse> {
	const { key, uid, shadow } = await shadowOf(context, resource);
	const plan = await planDeletion(
		{
			...{ key, uid, home: deployedOf(context.environment.self) },
			finalizers: finalizersOf(resource).filter((each) => each !== referencesFinalizer),
			isMarked: isMarkedForDeletion(resource),
			ownerUids: resource.ownerReferences.map((each) => each.uid),
			yields: await isInMarkedTenancy(context.backend, resource),
			holders: shadow === undefined ? [] : holders(shadow),
		},
		(resources) => {
			signal.throwIfAborted();
			return allHolders(context, resources, caller, describedPerCall, signal);
		},
		async () => {
			await context.runtime.scheduler.turn();
			signal.throwIfAborted();
		},
	);
	return responseOf(plan);
}

/** The key of a resource and its shadow, if it has one. */
async function shadowOf({ backend, environment }: ConstraintContext, { id }: Resource) {
	if (id === undefined) {
		throw new ConnectError("id is required", Code.InvalidArgument);
	}
	const key = keyOf(id, environment.self.region);
	const stored = await readShadow(backend, shadowName(key));
	const shadow = stored?.shadow.uid === id.uid ? stored.shadow : undefined;
	return { key, uid: id.uid, shadow };
}

const outcomes: Readonly<Record<DeletionPlan["outcome"], Outcome>> = {
	refused: Outcome.REFUSED,
	deleted: Outcome.DELETED,
	waits: Outcome.WAITS,
};

const kinds: Readonly<Record<Fate, Kind>> = {
	deleted: Kind.DELETED,
	waits: Kind.WAITS,
	blocked: Kind.BLOCKED,
	blocks: Kind.BLOCKS,
	cleared: Kind.CLEARED,
	disowned: Kind.DISOWNED,
};

/** What people need first: what is in the way. */
const ranks: Readonly<Record<Fate, number>> = {
	waits: 1,
	blocked: 1,
	blocks: 1,
	deleted: 2,
	cleared: 2,
	disowned: 2,
};

function responseOf({ outcome, effects, isPartial }: DeletionPlan): PlanDeletionResponse {
	const count = (fate: Fate) => effects.filter((each) => each.fate === fate).length;
	const shown = effects.filter(({ planned }) => !planned.isHidden);
	const rank = ({ planned, fate }: Effect) => (planned.level === 0 ? 0 : ranks[fate]);
	return create(PlanDeletionResponseSchema, {
		outcome: outcomes[outcome],
		effects: shown
			.toSorted((a, b) => rank(a) - rank(b) || a.planned.level - b.planned.level)
			.slice(0, named)
			.map(effectOf),
		counts: {
			deleted: count("deleted"),
			waiting: count("waits"),
			blocked: count("blocked"),
			blocking: count("blocks"),
			cleared: count("cleared"),
			disowned: count("disowned"),
		},
		hidden: effects.length - shown.length,
		isPartial,
	});
}

function effectOf({ planned, fate, waitsFor }: Effect): PlanDeletionResponse_Effect {
	const shown = waitsFor.filter(({ isHidden }) => !isHidden);
	return create(PlanDeletionResponse_EffectSchema, {
		resource: planned.key,
		uid: planned.uid,
		kind: kinds[fate],
		level: planned.level,
		finalizers: fate === "waits" ? [...planned.finalizers] : [],
		waitsFor: shown.slice(0, named).map(({ key }) => key),
		hidden: waitsFor.length - shown.length,
		unknown: [...planned.unknown],
	});
}

import { create } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { type ID, NamespaceSchema, type Resource } from "@plinth/proto";
import {
	addFinalizer,
	defaultTenancyUnit,
	deletionTimestampKey,
	displayName,
	finalizersOf,
	idOf,
	isCrossTenancy,
	isMarkedForDeletion,
	Namespace,
	newUlid,
	Partition,
	resourceOf,
	tenancyFinalizer,
} from "@plinth/resource";
import type { Consistency, Mutation } from "@plinth/storage";
import { enforce } from "../access/authorization.ts";
import { invalidArgument, uidMismatch } from "../errors/refusal.ts";
import { checkSize } from "../requests/limits.ts";
import type { ServiceContext } from "../service-context.ts";
import { assertTenancy } from "../tenancy/tenancy-check.ts";
import { checkDeletable } from "../tenancy/tenancy-defaults.ts";
import {
	checkNothingLeftBehind,
	checkUnitIsEmpty,
	mustBeEmpty,
	mustBeMarkedFirst,
} from "../tenancy/tenancy-removal.ts";
import type { Candidate } from "./candidate.ts";
import { refuseCopy, refuseOrigin } from "./copies.ts";
import { refuseStaleVersion } from "./stale-version.ts";
import {
	checkMark,
	checkMarked,
	checkMarking,
	checkOwner,
	checkStatus,
	checkVersionAndUid,
	keepsContent,
	mergeMetadata,
	statusRefused,
} from "./stored-rules.ts";
import { deletionWithTombstone } from "./tombstone.ts";

/** The mutations of a write, and their result. */
export interface WritePlan {
	/** The first one is of the resource itself. */
	readonly mutations: readonly Mutation[];
	/** The resource as written, except for the version, which the commit assigns. */
	readonly resource: Resource;
	/** The index of the mutation that asserts the owner. */
	readonly ownerAssert?: number;
	/** The asserts of its tenancy, if they were needed. */
	readonly tenancy?: readonly Mutation[];
}

/**
 * Plans the mutations that write the candidate over the stored resource, if any. At once if nothing has to be waited for.
 *
 * @throws ConnectError if a rule of the resource API forbids it.
 */
export function planWrite(
	context: ServiceContext,
	candidate: Candidate,
	stored: Resource | undefined,
	consistency: Consistency,
): WritePlan | Promise<WritePlan> {
	const { input } = candidate;
	if (stored !== undefined) {
		refuseCopy(stored);
	}
	refuseOrigin(input);
	if (stored === undefined || !isMarkedForDeletion(stored)) {
		checkMark(input);
	}
	if (stored === undefined) {
		return planCreate(context, candidate, consistency);
	}
	if (isMarkedForDeletion(stored) || isMarkedForDeletion(input)) {
		return planMarked(context, candidate, stored);
	}
	return planUpdate(context, candidate, stored, consistency);
}

async function planCreate(
	context: ServiceContext,
	candidate: Candidate,
	consistency: Consistency,
): Promise<WritePlan> {
	const { owner: named } = candidate.input;
	const isDecided = named === undefined || authorizeOwner(candidate, named);
	const prepared = candidate.prepare();
	const asserted = assertTenancy(context.backend, candidate.type, candidate.id, consistency);
	const tenancy = asserted instanceof Promise ? await asserted : asserted;
	refuseStaleVersion(prepared.version, undefined);
	if (prepared.id?.uid) {
		throw uidMismatch();
	}
	if (Object.keys(prepared.status).length > 0) {
		throw statusRefused();
	}
	if (isMarkedForDeletion(prepared)) {
		throw invalidArgument("resource.metadata.deletionTimestamp can't be set on resource creation");
	}
	if (mustBeEmpty(prepared)) {
		await checkNothingLeftBehind(context.backend, candidate.id);
	}
	const owner =
		prepared.owner && (await resolveOwner(context, candidate, prepared.owner, isDecided));
	const resource: Resource = {
		...prepared,
		id: { ...candidate.id, uid: newUlid(context.runtime) },
		generation: newUlid(context.runtime),
		...(owner && { owner }),
	};
	checkSize(resource);
	const mutations: Mutation[] = [
		{ op: "put", resource, expectedVersion: "" },
		...(candidate.type.key === Partition.key ? await defaultNamespaceOf(context, candidate) : []),
		...tenancy,
	];
	if (owner === undefined) {
		return { mutations, resource, tenancy };
	}
	mutations.push({ op: "assert", id: owner, uid: owner.uid });
	return { mutations, resource, tenancy, ownerAssert: mutations.length - 1 };
}

/**
 * Looks an owner up, with a strong read if only its name is given; the commit asserts that it exists. If its
 * name was not enough to decide whether the caller may reference it, the stored resource decides. An owner in another
 * partition is looked up as well: a copy can't be one, because its removal leaves no tombstone.
 */
async function resolveOwner(
	context: ServiceContext,
	candidate: Candidate,
	owner: ID,
	isDecided: boolean,
): Promise<ID> {
	const isSamePartition = owner.tenancy?.partition === candidate.id.tenancy?.partition;
	if (owner.uid && isDecided && isSamePartition) {
		return owner;
	}
	const stored = await context.backend.lookup(owner, { consistency: "strong" });
	if (stored?.id === undefined || (owner.uid && owner.uid !== stored.id.uid)) {
		throw ownerDoesNotExist(candidate.input.owner ?? owner);
	}
	if (!isDecided) {
		authorizeOwner(candidate, owner, stored);
	}
	if (stored.origin !== undefined) {
		throw invalidArgument("resource.owner is a copy, which can't own resources");
	}
	return { ...owner, uid: stored.id.uid };
}

/**
 * Naming an owner requires the same rights as naming the target of a reference.
 *
 * @returns whether the decision is final. If not, it requires the stored resource.
 * @throws ConnectError PermissionDenied.
 */
function authorizeOwner({ caller, id }: Candidate, owner: ID, stored?: Resource): boolean {
	if (caller === undefined || owner.type === undefined) {
		return true;
	}
	const { type, tenancy = {}, name } = owner;
	const target = { type, tenancy, name, isCrossTenancy: isCrossTenancy(tenancy, id.tenancy ?? {}) };
	const decision = caller.decideReference(target, stored);
	enforce(decision);
	return decision.kind === "allowed";
}

/**
 * The error for a new resource whose owner does not exist, or not in that incarnation. It repeats what the caller has
 * named, and so tells nothing to those who may not read the owner.
 */
export function ownerDoesNotExist(owner: ID): ConnectError {
	const incarnation = owner.uid ? ` with uid ${owner.uid}` : "";
	return invalidArgument(
		`resource.owner does not exist: there is no ${displayName(owner)}${incarnation}`,
	);
}

/** A new partition is created together with its default namespace. */
async function defaultNamespaceOf(
	context: ServiceContext,
	candidate: Candidate,
): Promise<readonly Mutation[]> {
	const id = idOf(Namespace, defaultTenancyUnit, { partition: candidate.id.name });
	if ((await context.backend.lookup(id)) !== undefined) {
		return [];
	}
	id.uid = newUlid(context.runtime);
	const namespace = resourceOf(Namespace, { id, data: create(NamespaceSchema) });
	addFinalizer(namespace, tenancyFinalizer);
	namespace.generation = newUlid(context.runtime);
	return [{ op: "put", resource: namespace, expectedVersion: "" }];
}

/**
 * Plans a write again, on the newest resource of its name, from what the plan before it has read.
 *
 * @returns `undefined` if it requires more than that.
 * @throws ConnectError as `planWrite`.
 */
export function replanWrite(
	context: ServiceContext,
	candidate: Candidate,
	{ tenancy }: WritePlan,
	newest: Resource | undefined,
): WritePlan | undefined {
	if (newest === undefined || mustBeEmpty(newest)) {
		return undefined;
	}
	refuseCopy(newest);
	if (isMarkedForDeletion(newest)) {
		return markedPlan(context, candidate, newest);
	}
	checkMark(candidate.input);
	if (isMarkedForDeletion(candidate.input)) {
		return markedPlan(context, candidate, newest);
	}
	const { put, keeps } = updateOf(context, candidate, newest);
	const asserts = keeps ? [] : tenancy;
	return (
		asserts && { mutations: [put, ...asserts], resource: put.resource, ...(tenancy && { tenancy }) }
	);
}

function planUpdate(
	context: ServiceContext,
	candidate: Candidate,
	stored: Resource,
	consistency: Consistency,
): WritePlan | Promise<WritePlan> {
	const { put, keeps } = updateOf(context, candidate, stored);
	if (keeps) {
		return { mutations: [put], resource: put.resource };
	}
	const { backend } = context;
	const plan = (tenancy: readonly Mutation[]) => {
		return { mutations: [put, ...tenancy], resource: put.resource, tenancy };
	};
	const tenancy = assertTenancy(backend, candidate.type, candidate.id, consistency);
	return tenancy instanceof Promise ? tenancy.then(plan) : plan(tenancy);
}

/** The mutation that replaces a resource, and whether it changes nothing but finalizers. */
function updateOf(
	context: ServiceContext,
	candidate: Candidate,
	stored: Resource,
): { readonly put: Extract<Mutation, { readonly op: "put" }>; readonly keeps: boolean } {
	const prepared = candidate.prepare();
	candidate.authorizeReplacing(stored);
	checkVersionAndUid(prepared, stored);
	checkOwner(prepared, stored);
	checkStatus(prepared, stored);
	const resource = storedWith(context, stored, {
		...prepared,
		metadata: mergeMetadata(candidate.input, stored, prepared),
	});
	checkSize(resource);
	return {
		put: { op: "put", resource, expectedVersion: stored.version, replaces: stored },
		keeps: keepsContent(resource, stored),
	};
}

/**
 * A write of a resource that is marked for deletion, or that marks it. Only the mark and the finalizers can
 * change, so no hook of the type runs: stricter rules must not prevent its deletion.
 */
async function planMarked(
	context: ServiceContext,
	candidate: Candidate,
	stored: Resource,
): Promise<WritePlan> {
	const plan = markedPlan(context, candidate, stored);
	await checkUnitIsEmpty(context.backend, stored, plan.resource);
	return plan;
}

function markedPlan(context: ServiceContext, candidate: Candidate, stored: Resource): WritePlan {
	const { input } = candidate;
	candidate.authorizeReplacing(stored);
	checkVersionAndUid(input, stored);
	checkOwner(input, stored);
	checkStatus(input, stored);
	const metadata = mergeMetadata(input, stored);
	if (isMarkedForDeletion(stored)) {
		checkMarked(input, metadata, stored);
	} else {
		checkMarking(input, metadata, stored);
		checkDeletable(candidate.id);
	}
	const resource = storedWith(context, stored, { ...stored, metadata });
	if (mustBeMarkedFirst(stored)) {
		addFinalizer(resource, tenancyFinalizer);
	}
	return finalizersOf(resource).length === 0
		? { mutations: deletionWithTombstone(context.runtime, stored), resource }
		: { mutations: [{ op: "put", resource, expectedVersion: stored.version }], resource };
}

/** Plans a deletion: no mutation, a deletion mark, or the deletion with its tombstone. */
export async function planDelete(
	context: ServiceContext,
	stored: Resource,
): Promise<readonly Mutation[]> {
	refuseCopy(stored);
	const mustBeMarked = mustBeMarkedFirst(stored);
	if (finalizersOf(stored).length === 0 && !mustBeMarked) {
		await checkUnitIsEmpty(context.backend, stored, stored);
		return deletionWithTombstone(context.runtime, stored);
	}
	if (isMarkedForDeletion(stored)) {
		return [];
	}
	return [markingOf(context, stored)];
}

/**
 * Plans a deletion again, on the newest resource.
 *
 * @returns `undefined` if more than the resource decides.
 */
export function replanDelete(
	context: ServiceContext,
	newest: Resource,
): readonly Mutation[] | undefined {
	if (mustBeEmpty(newest)) {
		return undefined;
	}
	refuseCopy(newest);
	if (finalizersOf(newest).length === 0) {
		return deletionWithTombstone(context.runtime, newest);
	}
	return isMarkedForDeletion(newest) ? [] : [markingOf(context, newest)];
}

/** Whether the resource is the one that the ID names: of its group version, and of its uid if it has one. */
export function isStoredAs(stored: Resource, { type, uid }: ID): boolean {
	return (
		stored.id?.type?.groupVersion === type?.groupVersion && (uid === "" || uid === stored.id?.uid)
	);
}

/** The mutation that marks a resource for deletion. */
function markingOf(context: ServiceContext, stored: Resource): Mutation {
	const now = new Date(context.runtime.clock.now()).toISOString();
	const resource = storedWith(context, stored, {
		...stored,
		metadata: { ...stored.metadata, [deletionTimestampKey]: now },
	});
	if (mustBeMarkedFirst(stored)) {
		addFinalizer(resource, tenancyFinalizer);
	}
	return { op: "put", resource, expectedVersion: stored.version };
}

/** New content for a stored resource: identity, owner and status stay, the generation is new. */
function storedWith(context: ServiceContext, stored: Resource, content: Resource): Resource {
	const id = content.id ?? stored.id;
	return {
		...content,
		...(id && { id: { ...id, uid: stored.id?.uid ?? "" } }),
		...(stored.owner && { owner: stored.owner }),
		status: stored.status,
		generation: newUlid(context.runtime),
	};
}

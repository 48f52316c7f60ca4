import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { type ID, NamespaceSchema, type Resource } from "@plinth/proto";
import {
	addFinalizer,
	defaultUnit,
	deletionTimestampKey,
	finalizersOf,
	idOf,
	isElsewhere,
	isMarkedForDeletion,
	Namespace,
	newUlid,
	Partition,
	resourceOf,
	tenancyFinalizer,
} from "@plinth/resource";
import { type Consistency, type Mutation, NotFound } from "@plinth/storage";
import { enforce } from "../access/authorization.ts";
import { invalidArgument, otherUid, staleVersion } from "../errors/refusal.ts";
import { readStored } from "../read/read-stored.ts";
import { checkSize } from "../requests/limits.ts";
import type { ServiceContext } from "../service-context.ts";
import { assertTenancy } from "../tenancy/tenancy-check.ts";
import { checkDeletable } from "../tenancy/tenancy-defaults.ts";
import { checkRelease, checkVacant, mustBeMarkedFirst } from "../tenancy/tenancy-removal.ts";
import type { Candidate } from "./candidate.ts";
import {
	checkIncarnation,
	checkMark,
	checkMarked,
	checkMarking,
	checkOwner,
	checkStatus,
	leavesContent,
	metadataOver,
	statusRefused,
} from "./stored-rules.ts";
import { deletionWithTombstone } from "./tombstone.ts";

/** What a write comes down to. */
export interface WritePlan {
	/** The first one is about the resource itself. */
	readonly mutations: readonly Mutation[];
	/** The resource as written, but for the version of the commit. */
	readonly resource: Resource;
	/** Where among the mutations the owner is asserted. */
	readonly ownerAssert?: number;
}

/**
 * What it takes to write the candidate over what is stored.
 *
 * @throws ConnectError where a rule of resource-api forbids it.
 */
export async function planWrite(
	context: ServiceContext,
	candidate: Candidate,
	stored: Resource | undefined,
	consistency: Consistency,
): Promise<WritePlan> {
	const { given } = candidate;
	if (stored === undefined || !isMarkedForDeletion(stored)) {
		checkMark(given);
	}
	if (stored === undefined) {
		return planCreate(context, candidate, consistency);
	}
	if (isMarkedForDeletion(stored) || isMarkedForDeletion(given)) {
		return await planMarked(context, candidate, stored);
	}
	return planUpdate(context, candidate, stored, consistency);
}

async function planCreate(
	context: ServiceContext,
	candidate: Candidate,
	consistency: Consistency,
): Promise<WritePlan> {
	const { owner: named } = candidate.given;
	const isDecided = named === undefined || authorizeOwner(candidate, named);
	const prepared = candidate.prepare();
	const tenancy = await assertTenancy(context.backend, candidate.type, candidate.id, consistency);
	if (prepared.version) {
		throw staleVersion();
	}
	if (prepared.id?.uid) {
		throw otherUid();
	}
	if (Object.keys(prepared.status).length > 0) {
		throw statusRefused();
	}
	if (isMarkedForDeletion(prepared)) {
		throw invalidArgument("resource.metadata.deletionTimestamp can't be set on resource creation");
	}
	await checkVacant(context.backend, candidate.id);
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
		...(await companions(context, candidate)),
		...tenancy,
	];
	if (owner === undefined) {
		return { mutations, resource };
	}
	mutations.push({ op: "assert", id: owner, uid: owner.uid });
	return { mutations, resource, ownerAssert: mutations.length - 1 };
}

/**
 * Looks an owner up, strongly where only its name is given; the commit asserts that it is there. Where its
 * name was not enough to decide whether the caller may name it, what is stored decides.
 */
async function resolveOwner(
	context: ServiceContext,
	candidate: Candidate,
	owner: ID,
	isDecided: boolean,
): Promise<ID> {
	if (owner.uid && isDecided) {
		return owner;
	}
	const stored = await readStored(context.backend, owner, "strong");
	if (stored?.id === undefined || (owner.uid && owner.uid !== stored.id.uid)) {
		throw ownerDoesNotExist();
	}
	if (!isDecided) {
		authorizeOwner(candidate, owner, stored);
	}
	return { ...owner, uid: stored.id.uid };
}

/**
 * Naming an owner takes what naming the target of a reference takes.
 *
 * @returns whether the decision is final: otherwise it takes what is stored.
 * @throws ConnectError PermissionDenied.
 */
function authorizeOwner({ caller, id }: Candidate, owner: ID, stored?: Resource): boolean {
	if (caller === undefined || owner.type === undefined) {
		return true;
	}
	const { type, tenancy = {}, name } = owner;
	const target = { type, tenancy, name, isElsewhere: isElsewhere(tenancy, id.tenancy ?? {}) };
	const decision = caller.decideReference(target, stored);
	enforce(decision);
	return decision.kind === "allowed";
}

/** The owner of a new resource is not there, or not in that incarnation. */
export function ownerDoesNotExist(): ConnectError {
	return new ConnectError("resource.owner does not exist", Code.InvalidArgument);
}

/** What is created along with a resource: a partition comes with its default namespace. */
async function companions(
	context: ServiceContext,
	candidate: Candidate,
): Promise<readonly Mutation[]> {
	if (candidate.type.key !== Partition.key) {
		return [];
	}
	const id = idOf(Namespace, defaultUnit, { partition: candidate.id.name });
	try {
		await context.backend.read(id);
		return [];
	} catch (failure) {
		if (!(failure instanceof NotFound)) {
			throw failure;
		}
	}
	id.uid = newUlid(context.runtime);
	const namespace = resourceOf(Namespace, { id, data: create(NamespaceSchema) });
	addFinalizer(namespace, tenancyFinalizer);
	namespace.generation = newUlid(context.runtime);
	return [{ op: "put", resource: namespace, expectedVersion: "" }];
}

async function planUpdate(
	context: ServiceContext,
	candidate: Candidate,
	stored: Resource,
	consistency: Consistency,
): Promise<WritePlan> {
	const prepared = candidate.prepare();
	candidate.authorizeWith(stored);
	checkIncarnation(prepared, stored);
	checkOwner(prepared, stored);
	checkStatus(prepared, stored);
	const resource = storedWith(context, stored, {
		...prepared,
		metadata: metadataOver(candidate.given, stored, prepared),
	});
	checkSize(resource);
	const put: Mutation = { op: "put", resource, expectedVersion: stored.version };
	if (leavesContent(resource, stored)) {
		return { mutations: [put], resource };
	}
	const { backend } = context;
	const tenancy = await assertTenancy(backend, candidate.type, candidate.id, consistency);
	return { mutations: [put, ...tenancy], resource };
}

/**
 * A write of a resource that is marked for deletion, or that marks it. Nothing but the mark and its
 * finalizers can change, so no hook of the type runs: stricter rules must not keep it from going.
 */
async function planMarked(
	context: ServiceContext,
	candidate: Candidate,
	stored: Resource,
): Promise<WritePlan> {
	const { given } = candidate;
	candidate.authorizeWith(stored);
	checkIncarnation(given, stored);
	checkOwner(given, stored);
	checkStatus(given, stored);
	const metadata = metadataOver(given, stored);
	if (isMarkedForDeletion(stored)) {
		checkMarked(given, metadata, stored);
	} else {
		checkMarking(given, metadata, stored);
		checkDeletable(candidate.id);
	}
	const resource = storedWith(context, stored, { ...stored, metadata });
	if (mustBeMarkedFirst(stored)) {
		addFinalizer(resource, tenancyFinalizer);
	}
	await checkRelease(context.backend, stored, resource);
	return finalizersOf(resource).length === 0
		? { mutations: deletionWithTombstone(context.runtime, stored), resource }
		: { mutations: [{ op: "put", resource, expectedVersion: stored.version }], resource };
}

/** What a deletion comes down to: nothing, a mark, or the removal with its tombstone. */
export async function planDelete(
	context: ServiceContext,
	stored: Resource,
): Promise<readonly Mutation[]> {
	const mustBeMarked = mustBeMarkedFirst(stored);
	if (finalizersOf(stored).length === 0 && !mustBeMarked) {
		await checkRelease(context.backend, stored, stored);
		return deletionWithTombstone(context.runtime, stored);
	}
	if (isMarkedForDeletion(stored)) {
		return [];
	}
	const now = new Date(context.runtime.clock.now()).toISOString();
	const resource = storedWith(context, stored, {
		...stored,
		metadata: { ...stored.metadata, [deletionTimestampKey]: now },
	});
	if (mustBeMarked) {
		addFinalizer(resource, tenancyFinalizer);
	}
	return [{ op: "put", resource, expectedVersion: stored.version }];
}

/** New content for a stored resource: identity, owner and status stay, the generation is fresh. */
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

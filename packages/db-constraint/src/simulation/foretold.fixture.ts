import { equals } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import type { Resource } from "@plinth/proto";
import {
	PlanDeletionResponse_Effect_Kind as Kind,
	PlanDeletionResponse_Outcome as Outcome,
	type PlanDeletionResponse,
} from "@plinth/proto/gen/plinth/schema/v1/reference_service_pb.js";
import { isMarkedForDeletion } from "@plinth/resource";
import type { SimulatedServer } from "./participants.fixture.ts";
import type { Records } from "./records.fixture.ts";
import { unsettled } from "./settled.fixture.ts";
import type { SimulationContext } from "./simulation-context.fixture.ts";
import { nameOf } from "./trace-format.fixture.ts";
import type { TrackedResource } from "./tracked-resources.fixture.ts";
import { serverOf, type User } from "./users.fixture.ts";

/** How many resources are written before, so that there are references. */
const writes = 16;

/** How long everything may take to come to rest. */
const restLimitMs = 20 * 60_000;

/** For how long nothing must be left to settle: cascades have begun by then, and lost owners were asked about. */
const restMs = 180_000;

/**
 * Checks in the end, when everything has settled, that a deletion does what its plan foretells. Nothing is foretold about
 * what is being deleted already, or would be if it were not blocked, and may continue with the deletion of something else:
 * then there is nothing to check.
 */
export async function checkForetold(sim: SimulationContext, user: User): Promise<void> {
	await user.write(writes);
	await rest(sim);
	const { records } = sim.observer;
	const before = new Map(records.resources);
	const chosen = choose(sim, [...before.values()]);
	const server = chosen && serverOf(sim, chosen.deployment);
	const isAtRest = [...before.values()].every(
		(each) => !isMarkedForDeletion(each.resource) && !isToBeDeleted(records, each),
	);
	if (
		chosen === undefined ||
		server === undefined ||
		!isAtRest ||
		records.markedNamespaces.size > 0
	) {
		return;
	}
	const { name = "", tenancy } = chosen.resource.id ?? {};
	const { outcome, effects } = await planOf(server, chosen.resource);
	const isDeleted = await user.attempt(server, [
		`delete ${name}, as foretold`,
		(it) => user.delete(it, name, tenancy?.namespace ?? ""),
	]);
	await rest(sim);
	const isRefused = outcome === Outcome.REFUSED;
	const problems = isDeleted === isRefused ? [isRefused ? "not refused" : "refused"] : [];
	const kinds = new Map(isRefused ? [] : effects.map(({ uid, kind }) => [uid, kind]));
	for (const was of before.values()) {
		const kind = kinds.get(was.uid);
		const problem = problemOf(kind, was, records.byUid.get(was.uid));
		if (problem !== undefined) {
			problems.push(`${was.text}, foretold ${nameOf(Kind, kind ?? Kind.UNSPECIFIED)}, ${problem}`);
		}
	}
	if (problems.length > 0) {
		const what = `the deletion of ${chosen.text}, foretold ${nameOf(Outcome, outcome)}`;
		sim.observer.violation(3, `${what}, went otherwise: ${problems.join("; ")}`);
	}
}

/** Whether it has lost an owner, and is blocked. */
function isToBeDeleted(records: Records, tracked: TrackedResource): boolean {
	return tracked.resource.ownerReferences.some((owner) => records.isInvalid(tracked, owner));
}

/** A resource to delete, rather one that is referenced or owns another. */
function choose(
	sim: SimulationContext,
	resources: readonly TrackedResource[],
): TrackedResource | undefined {
	const { records } = sim.observer;
	const owners = new Set(
		resources.flatMap(({ resource }) => resource.ownerReferences.map(({ uid }) => uid)),
	);
	const all = resources.filter(({ deployment }) => !deployment.isGone);
	const held = all.filter(
		({ text, uid }) => owners.has(uid) || [...records.referencing(text)].length > 0,
	);
	return sim.pickOf(held) ?? sim.pickOf(all);
}

/** Waits until everything has been settled for a while. */
async function rest(sim: SimulationContext): Promise<void> {
	const { clock } = sim.runtime;
	const endMs = clock.monotonic() + restLimitMs;
	let problem: string | undefined;
	do {
		await sim.wait(restMs);
		problem = unsettled(sim.observer.records);
	} while (problem !== undefined && clock.monotonic() < endMs);
	if (problem !== undefined) {
		throw new Error(problem);
	}
}

function planOf(server: SimulatedServer, resource: Resource): Promise<PlanDeletionResponse> {
	const service = server.referenceService({
		read: async () => resource,
		callerOf: async () => undefined,
	});
	const call = { signal: new AbortController().signal } as HandlerContext;
	const request = { $typeName: "plinth.schema.v1.PlanDeletionRequest" } as const;
	return Promise.resolve(service.planDeletion(request, call)) as Promise<PlanDeletionResponse>;
}

/** What is wrong with what was foretold of a resource; `undefined` if nothing is. */
function problemOf(
	kind: Kind | undefined,
	{ resource: before }: TrackedResource,
	after: TrackedResource | undefined,
): string | undefined {
	const isKept = after !== undefined && !isMarkedForDeletion(after.resource);
	const hasOwners = after?.resource.ownerReferences.length === before.ownerReferences.length;
	const hasData = sameData(before, after?.resource);
	switch (kind) {
		case Kind.DELETED:
			return after === undefined ? undefined : "still exists";
		case Kind.WAITS:
			return after !== undefined && !isKept ? undefined : "does not wait";
		case Kind.CLEARED:
			return isKept && !hasData ? undefined : "is not cleared";
		case Kind.DISOWNED:
			return isKept && !hasOwners ? undefined : "is not disowned";
		case Kind.BLOCKED:
		case Kind.BLOCKS:
			return isKept ? undefined : "did not stay";
		default:
			return isKept && hasOwners && hasData ? undefined : "has changed";
	}
}

function sameData({ data: before }: Resource, after: Resource | undefined): boolean {
	const { data } = after ?? {};
	return before === undefined || data === undefined
		? before === data
		: equals(AnySchema, before, data);
}

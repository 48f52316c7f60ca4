import { create, equals } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import { OwnerReferenceSchema, type Resource } from "@plinth/proto";
import {
	PlanDeletionResponse_Effect_Kind as Kind,
	PlanDeletionResponse_Outcome as Outcome,
	type PlanDeletionResponse,
} from "@plinth/proto/gen/plinth/schema/v1/reference_service_pb.js";
import { isMarkedForDeletion, type ResourceType, referenceTo } from "@plinth/resource";
import { Refused } from "@plinth/storage";
import { describe, expect, it } from "vitest";
import { Thing, ThingSchema, Widget, WidgetSchema } from "../../testdata/types.ts";
import { Lab, type LabDeployment, make } from "../lab/lab.fixture.ts";
import { createReferenceService } from "./reference-service.ts";

const never = new AbortController().signal;
const count = 6;

/** Resources of two deployments, with references and owners at random, at rest. */
async function drawnLab(seed: number) {
	const lab = new Lab(seed);
	const { random } = lab.runtime;
	const alpha = await lab.add({ name: "alpha", service: "alpha", region: "r1", types: [Thing] });
	const beta = await lab.add({
		name: "beta",
		service: "beta",
		region: "r1",
		types: [Widget],
		foreignTypes: [Thing],
	});
	const happens = (probability: number) => random.next() < probability;
	const below = (limit: number) => Math.floor(random.next() * limit);
	const thing = () => referenceTo({ type: Thing.type, name: `t${below(count)}` });
	const widget = () => referenceTo({ type: Widget.type, name: `w${below(count)}` });
	const links = () => ({
		...(happens(0.25) && { needs: thing() }),
		...(happens(0.35) && { belongsTo: thing() }),
		...(happens(0.25) && { likes: [thing()] }),
	});
	const stored = new Map<string, readonly [LabDeployment, ResourceType, Resource]>();
	const write = async (at: LabDeployment, type: ResourceType, resource: Resource) => {
		const finalizers = stored.has(`${resource.id?.name}`) || !happens(0.15) ? "" : "user/holds";
		const written = await lab.run(at.write(resource, finalizers));
		stored.set(`${resource.id?.name}`, [at, type, written]);
	};
	for (let at = 0; at < count; at++) {
		await write(alpha, Thing, make(Thing, `t${at}`, create(ThingSchema)));
		await write(beta, Widget, make(Widget, `w${at}`, create(WidgetSchema)));
	}
	// Of several owners that are lost, it is not foretold which is given up last.
	const ownersOf = () =>
		Array.from({ length: happens(0.3) ? 1 : 0 }, () => {
			const [, type, { id } = {}] = stored.get(`t${below(count)}`) ?? [];
			return create(OwnerReferenceSchema, {
				...(type && { type: { ...type.type } }),
				...(id?.tenancy && { tenancy: id.tenancy }),
				...{ name: id?.name ?? "", uid: id?.uid ?? "", region: "r1" },
				unsetOnDelete: happens(0.3),
			});
		});
	for (let at = 0; at < count; at++) {
		const aThing = make(Thing, `t${at}`, create(ThingSchema, links()));
		const next = happens(0.3) ? { next: widget() } : {};
		const aWidget = make(Widget, `w${at}`, create(WidgetSchema, { ...links(), ...next }));
		for (const [deployment, type, resource] of [
			[alpha, Thing, aThing],
			[beta, Widget, aWidget],
		] as const) {
			resource.ownerReferences = ownersOf().filter(({ name }) => name !== resource.id?.name);
			await write(deployment, type, resource);
		}
	}
	await lab.pass(120_000);
	return { lab, stored, below };
}

async function foretold({ current }: LabDeployment, resource: Resource, lab: Lab) {
	const service = createReferenceService(current.constraints.context, {
		read: async () => resource,
		callerOf: async () => undefined,
	});
	const request = { $typeName: "plinth.schema.v1.PlanDeletionRequest" } as const;
	const plan = service.planDeletion(request, { signal: never } as HandlerContext);
	return lab.run(Promise.resolve(plan)) as Promise<PlanDeletionResponse>;
}

function sameData(a: Resource | undefined, b: Resource): boolean {
	return equals(AnySchema, a?.data ?? create(AnySchema), b.data ?? create(AnySchema));
}

function nameOf(kind: Kind | undefined): string {
	return Object.entries(Kind).find(([, value]) => value === kind)?.[0] ?? "nothing";
}

/** What is wrong with what a plan has foretold of a resource. */
function problemOf(kind: Kind | undefined, before: Resource, after: Resource | undefined) {
	const isMarked = after !== undefined && isMarkedForDeletion(after);
	const hasOwners = after?.ownerReferences.length === before.ownerReferences.length;
	switch (kind) {
		case Kind.DELETED:
			return after === undefined ? "" : "still exists";
		case Kind.WAITS:
			return isMarked ? "" : "does not wait";
		case Kind.CLEARED:
			return after !== undefined && !isMarked && !sameData(after, before) ? "" : "is not cleared";
		case Kind.DISOWNED:
			return after !== undefined && !isMarked && !hasOwners ? "" : "is not disowned";
		case Kind.BLOCKED:
		case Kind.BLOCKS:
			return after !== undefined && !isMarked ? "" : "did not stay";
		default:
			return !isMarked && sameData(after, before) && hasOwners ? "" : "was not foretold to change";
	}
}

describe("the plan of a deletion", () => {
	it.for(Array.from({ length: 120 }, (_, seed) => seed))("comes true, seed %i", async (seed) => {
		const { lab, stored, below } = await drawnLab(seed);
		const [at, type, chosen] = [...stored.values()][below(stored.size)] ?? [];
		if (at === undefined || type === undefined || chosen?.id === undefined) {
			throw new Error("nothing is stored");
		}
		const before = new Map<string, Resource>();
		for (const [name, [deployment, , { id }]] of stored) {
			const now = id && (await deployment.read(id));
			if (now !== undefined) {
				before.set(name, now);
			}
		}
		const resource = before.get(chosen.id.name);
		if (resource === undefined) {
			// It has lost its owners while everything settled.
			return;
		}
		const plan = await foretold(at, resource, lab);
		const refusal = await lab.run(at.delete(chosen.id)).catch((failure: unknown) => failure);
		expect(refusal instanceof Refused, String(refusal)).toBe(plan.outcome === Outcome.REFUSED);
		await lab.pass(15 * 60_000);
		const kinds = new Map(plan.effects.map(({ resource, kind }) => [resource?.name ?? "", kind]));
		const problems: string[] = [];
		for (const [name, was] of before) {
			const deployment = stored.get(name)?.[0];
			const after = was.id && (await deployment?.read(was.id));
			const kind = plan.outcome === Outcome.REFUSED ? undefined : kinds.get(name);
			const problem = problemOf(kind, was, after);
			if (problem !== "") {
				problems.push(`${name}, foretold ${nameOf(kind)}, ${problem}`);
			}
		}
		expect(problems).toEqual([]);
	});
});

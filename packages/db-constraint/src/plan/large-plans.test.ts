import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
	PlanDeletionResponse_Effect_Kind as Kind,
	PlanDeletionResponse_Outcome as Outcome,
	type PlanDeletionResponse,
} from "@plinth/proto/gen/plinth/schema/v1/reference_service_pb.js";
import { referenceTo } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { Thing, ThingSchema } from "../../testdata/types.ts";
import { Lab, make } from "../lab/lab.fixture.ts";
import { createReferenceService } from "./reference-service.ts";

const never = new AbortController().signal;
const to = (name: string) => referenceTo({ type: Thing.type, name });

async function lonely() {
	const lab = new Lab(1);
	const alpha = await lab.add({ name: "alpha", service: "alpha", region: "r1", types: [Thing] });
	const put = (name: string, init: Parameters<typeof create<typeof ThingSchema>>[1]) =>
		lab.run(alpha.write(make(Thing, name, create(ThingSchema, init))));
	const plan = async (name: string) => {
		// The index of references follows the storage.
		await lab.pass(1_000);
		const resource = await alpha.read(alpha.id(Thing, name));
		if (resource === undefined) {
			throw new Error(`no ${name}`);
		}
		const service = createReferenceService(alpha.current.constraints.context, {
			read: async () => resource,
			callerOf: async () => undefined,
		});
		const request = { $typeName: "plinth.schema.v1.PlanDeletionRequest" } as const;
		const planned = service.planDeletion(request, { signal: never } as HandlerContext);
		return lab.run(Promise.resolve(planned)) as Promise<PlanDeletionResponse>;
	};
	return { put, plan };
}

describe("the plan of a deletion", () => {
	it("finds what blocks among more resources than it describes, and says that there are more", async () => {
		const { put, plan } = await lonely();
		await put("a", {});
		for (let at = 0; at < 1_200; at++) {
			await put(`c-${at}`, { belongsTo: to("a") });
		}
		const before = await plan("a");
		expect(before).toMatchObject({ outcome: Outcome.DELETED, isPartial: true });
		expect(before.effects).toHaveLength(1_000);
		expect(before.counts?.deleted).toBe(1_001);
		await put("last", { needs: to("a") });
		const { outcome, effects } = await plan("a");
		expect(outcome).toBe(Outcome.REFUSED);
		expect(effects).toMatchObject([
			{ kind: Kind.BLOCKED, waitsFor: [{ name: "last" }] },
			{ kind: Kind.BLOCKS, resource: { name: "last" } },
		]);
	});

	it("follows a long chain to its end", async () => {
		const { put, plan } = await lonely();
		await put("c-0", {});
		for (let at = 1; at < 1_500; at++) {
			await put(`c-${at}`, { belongsTo: to(`c-${at - 1}`) });
		}
		await put("last", { needs: to("c-1499") });
		const { outcome, counts, effects } = await plan("c-0");
		expect(outcome).toBe(Outcome.DELETED);
		expect(counts).toMatchObject({ deleted: 1_498, waiting: 1, blocked: 1, blocking: 1 });
		expect(effects.slice(0, 3)).toMatchObject([
			{ resource: { name: "c-0" } },
			{ kind: Kind.WAITS, resource: { name: "c-1498" }, waitsFor: [{ name: "c-1499" }] },
			{ kind: Kind.BLOCKED, resource: { name: "c-1499" }, waitsFor: [{ name: "last" }] },
		]);
	});

	it("tells of two that only block each other that they stay", async () => {
		const { put, plan } = await lonely();
		await put("a", {});
		await put("b", { belongsTo: to("a") });
		await put("c", { belongsTo: to("a"), needs: to("b") });
		await put("b", { belongsTo: to("a"), needs: to("c") });
		const { outcome, effects } = await plan("a");
		expect(outcome).toBe(Outcome.WAITS);
		expect(effects).toMatchObject([
			{ kind: Kind.WAITS, resource: { name: "a" }, waitsFor: [{ name: "b" }, { name: "c" }] },
			{ kind: Kind.BLOCKED, waitsFor: [{}] },
			{ kind: Kind.BLOCKED, waitsFor: [{}] },
		]);
	});
});

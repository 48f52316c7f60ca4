import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { Condition_State } from "@plinth/proto";
import { referenceTo } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { Thing, ThingSchema, Widget, WidgetSchema } from "../../testdata/types.ts";
import { createDeploymentService } from "../deployments/deployment-service.ts";
import { reestablishOwnReferences } from "../succession/succession.ts";
import { Lab, make } from "./lab.fixture.ts";

const never = new AbortController().signal;

describe("targets that were lost in a restore", () => {
	it("need not be confirmed any longer", async () => {
		const lab = new Lab(1);
		const spec = { service: "beta", region: "r1", types: [Widget], foreignTypes: [Thing] };
		const alpha = await lab.add({ name: "alpha", service: "alpha", region: "r1", types: [Thing] });
		const beta = await lab.add({ name: "beta", ...spec });
		await lab.run(alpha.write(make(Thing, "a", create(ThingSchema))));
		const needs = referenceTo({ type: Thing.type, name: "a" });
		await lab.run(beta.write(make(Widget, "w", create(WidgetSchema, { needs }))));
		const w = beta.id(Widget, "w");
		expect((await beta.shadow(w))?.tasks).toMatchObject([{ task: { case: "confirm" } }]);
		const restored = await lab.succeed(alpha, []);
		await lab.run(reestablishOwnReferences(restored.current.constraints.context, never));
		Object.assign(restored.info, { established: true });
		await lab.pass(60_000);
		expect((await beta.shadow(w))?.tasks).toMatchObject([{ task: { case: "resolve" } }]);
	});

	it("are reported at what references them, which stays as it is until they are back", async () => {
		const lab = new Lab(1);
		const alpha = await lab.add({ name: "alpha", service: "alpha", region: "r1", types: [Thing] });
		const beta = await lab.add({
			name: "beta",
			service: "beta",
			region: "r1",
			types: [Widget],
			foreignTypes: [Thing],
		});
		await lab.run(alpha.write(make(Thing, "a", create(ThingSchema))));
		const to = referenceTo({ type: Thing.type, name: "a" });
		const all = { blocks: { needs: to }, cascades: { belongsTo: to }, unsets: { likes: [to] } };
		const written = new Map<string, unknown>();
		for (const [name, data] of Object.entries(all)) {
			const widget = await lab.run(beta.write(make(Widget, name, create(WidgetSchema, data))));
			written.set(name, widget.data);
		}
		await lab.pass(5_000);

		const listed = async () => {
			const { context } = beta.current.constraints;
			const service = createDeploymentService(context, {
				outdatedSince: () => undefined,
				store: beta.store,
				callerOf: async () => undefined,
			});
			const request = { $typeName: "plinth.schema.v1.ListDeploymentsRequest" } as const;
			const call = { signal: never } as HandlerContext;
			const response = await lab.run(Promise.resolve(service.listDeployments(request, call)));
			return (response.deployments ?? []).map(({ service, references = 0n, missing = 0n }) => {
				return `${service}: ${references} references, ${missing} missing`;
			});
		};
		const own = "beta: 0 references, 0 missing";
		expect(await listed()).toEqual(["alpha: 3 references, 0 missing", own]);

		const restored = await lab.succeed(alpha, []);
		await lab.run(reestablishOwnReferences(restored.current.constraints.context, never));
		Object.assign(restored.info, { established: true });
		await lab.pass(60_000);
		for (const [name, data] of written) {
			const stored = await beta.read(beta.id(Widget, name));
			expect(stored?.data).toEqual(data);
			expect(stored?.status.references?.conditions).toMatchObject([
				{
					type: "ReferencesResolved",
					state: Condition_State.FALSE,
					message: expect.stringMatching(
						/^missing: \S+: alpha.Thing default\/default\/a \(r1\); references stay until their targets are back, or operators settle them: plinth deployments settle alpha$/,
					),
				},
			]);
		}

		expect(await listed()).toContain("alpha: 3 references, 3 missing");

		await lab.run(restored.write(make(Thing, "a", create(ThingSchema))));
		await lab.pass(60_000);
		for (const name of written.keys()) {
			const stored = await beta.read(beta.id(Widget, name));
			expect(stored?.status.references?.conditions).toMatchObject([
				{ type: "ReferencesResolved", state: Condition_State.TRUE },
			]);
		}
		expect(await listed()).toContain("alpha: 3 references, 0 missing");
		await expect(lab.run(restored.delete(restored.id(Thing, "a")))).rejects.toThrow(
			"it is referenced by beta.Widget default/default/blocks",
		);
	});
});

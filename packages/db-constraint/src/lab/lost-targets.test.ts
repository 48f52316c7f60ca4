import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { Condition_State, OwnerReferenceSchema } from "@plinth/proto";
import { referenceTo } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { Thing, ThingSchema, Widget, WidgetSchema } from "../../testdata/types.ts";
import { createDeploymentService } from "../deployments/deployment-service.ts";
import { restore } from "../deployments/settling.fixture.ts";
import { reestablishOwnReferences } from "../succession/succession.ts";
import { Lab, type LabDeployment, make } from "./lab.fixture.ts";
import { hooked, thing, thingsInTwoRegions, to, twoDeployments, widget } from "./things.fixture.ts";

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

	it("are reported within a minute, also by what they own, while all others run on", async () => {
		const lab = new Lab(1);
		const alpha = await lab.add({ name: "alpha", service: "alpha", region: "r1", types: [Thing] });
		const foreignTypes = [Thing];
		const spec = { service: "beta", types: [Widget], foreignTypes };
		const betas = [
			await lab.add({ ...spec, name: "beta-1", region: "r1" }),
			await lab.add({ ...spec, name: "beta-2", region: "r2" }),
		];
		const { id } = await lab.run(alpha.write(make(Thing, "a", create(ThingSchema))));
		const to = { ...referenceTo({ type: Thing.type, name: "a" }), region: "r1" };
		const fields = { blocks: { needs: to }, cascades: { belongsTo: to }, unsets: { likes: [to] } };
		const { type, tenancy, name, region } = to;
		const owner = { type, tenancy, name, region, uid: id?.uid ?? "" };
		const owners = { owned: {}, released: { unsetOnDelete: true } };
		const all = new Map<LabDeployment, Map<string, unknown>>();
		for (const beta of betas) {
			const written = new Map<string, unknown>();
			all.set(beta, written);
			for (const [name, data] of Object.entries(fields)) {
				const { data: stored } = await lab.run(
					beta.write(make(Widget, name, create(WidgetSchema, data))),
				);
				written.set(name, stored);
			}
			for (const [name, flags] of Object.entries(owners)) {
				const ownerReferences = [create(OwnerReferenceSchema, { ...owner, ...flags })];
				const resource = { ...make(Widget, name, create(WidgetSchema)), ownerReferences };
				written.set(name, (await lab.run(beta.write(resource))).data);
			}
		}
		await lab.pass(1_000);
		const restored = await lab.succeed(alpha, []);
		// The others try in vain meanwhile, after pauses that grow.
		await lab.pass(45_000);
		await lab.run(reestablishOwnReferences(restored.current.constraints.context, never));
		Object.assign(restored.info, { established: true });
		lab.changed();
		await lab.pass(60_000);
		const problem =
			/^(missing|lost in a restore): .*alpha.Thing default\/default\/a \(r1\); .* settle them: plinth deployments settle alpha$/;
		for (const [beta, written] of all) {
			for (const [name, data] of written) {
				const stored = await beta.read(beta.id(Widget, name));
				expect({ name, data: stored?.data }).toEqual({ name, data });
				expect(stored?.ownerReferences).toHaveLength(name in owners ? 1 : 0);
				expect(stored?.status.references?.conditions).toMatchObject([
					{
						type: name in owners ? "OwnersKnown" : "ReferencesResolved",
						state: Condition_State.FALSE,
						message: expect.stringMatching(problem),
					},
				]);
			}
		}
		await lab.pass(600_000);
		for (const [beta, written] of all) {
			for (const name of written.keys()) {
				expect(await beta.read(beta.id(Widget, name))).toBeDefined();
			}
		}
	});

	it("are looked up less and less often, and at once when the registry changes", async () => {
		let establishments = 0;
		const { lab, alpha, beta } = await twoDeployments(
			hooked(async (method) => {
				establishments += Number(method === "EstablishReferences");
			}),
		);
		await lab.run(alpha.write(thing("a")));
		await lab.run(beta.write(widget("w", { needs: to("a") })));
		await lab.pass(1_000);
		const restored = await lab.succeed(alpha, []);
		await lab.run(reestablishOwnReferences(restored.current.constraints.context, never));
		Object.assign(restored.info, { established: true });
		lab.changed();
		await lab.pass(600_000);
		const w = beta.id(Widget, "w");
		expect((await beta.shadow(w))?.tasks).toMatchObject([{ task: { case: "resolve" } }]);
		const inAnHour = async () => {
			const before = establishments;
			await lab.pass(3_600_000);
			return establishments - before;
		};
		expect(await inAnHour()).toBe(12);

		const before = establishments;
		lab.announce(restored, "v2");
		await lab.pass(1_000);
		expect(establishments - before).toBe(1);
		expect(await inAnHour()).toBeGreaterThan(12);

		await lab.run(restored.write(thing("a")));
		await lab.pass(300_000);
		expect((await beta.shadow(w))?.tasks).toEqual([]);
	});
});

it("a target that was lost is found again though the deployment of another lost one is down", async () => {
	const { lab, alpha, far, beta } = await thingsInTwoRegions();
	await lab.run(alpha.write(thing("a")));
	await lab.run(far.write(thing("b")));
	await lab.run(beta.write(widget("w", { needs: to("a", "r1"), belongsTo: to("b", "r2") })));
	await lab.pass(5_000);
	const first = await restore(lab, alpha);
	const second = await restore(lab, far);
	const w = beta.id(Widget, "w");
	const recorded = async () => (await beta.shadow(w))?.outgoing.map(({ targetUid }) => targetUid);
	expect(await recorded()).toEqual(["", ""]);
	second.crash();
	const a = await lab.run(first.write(thing("a")));
	await lab.pass(600_000);
	expect(await recorded()).toEqual([a.id?.uid, ""]);
	await expect(lab.run(first.delete(first.id(Thing, "a")))).rejects.toThrow("is referenced by");
});

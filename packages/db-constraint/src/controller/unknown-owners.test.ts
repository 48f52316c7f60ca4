import { create } from "@bufbuild/protobuf";
import type { WorkHold } from "@plinth/controller";
import { Condition_State, OwnerReferenceSchema } from "@plinth/proto";
import { FakeClock } from "@plinth/runtime/testing";
import { decorateBackend, Exhausted, type Mutation, type StorageBackend } from "@plinth/storage";
import { describe, expect, it } from "vitest";
import { Thing, ThingSchema, Widget, WidgetSchema } from "../../testdata/types.ts";
import { Lab, make } from "../lab/lab.fixture.ts";
import { defaultConstraintLimits } from "../node/limits.ts";
import { HolderQuery } from "../protocol/holder-query.ts";
import { shadowName } from "../shadow/shadow.ts";
import { HandlersOfHolds } from "./shadow-handlers.ts";
import { UnknownOwners } from "./unknown-owners.ts";

/** @param decorate - decorates the storage of `beta`. */
async function ownedElsewhere(decorate?: (backend: StorageBackend) => StorageBackend) {
	const lab = new Lab(1);
	const alpha = await lab.add({ name: "alpha-1", service: "alpha", region: "r1", types: [Thing] });
	const beta = await lab.add(
		{
			name: "beta-2",
			service: "beta",
			region: "r2",
			types: [Widget],
			foreignTypes: [Thing],
		},
		decorate,
	);
	const owner = await lab.run(alpha.write(make(Thing, "a", create(ThingSchema))));
	const widget = make(Widget, "w", create(WidgetSchema));
	const { type, tenancy, name, uid } = alpha.id(Thing, "a");
	widget.ownerReferences = [
		create(OwnerReferenceSchema, {
			...(type && { type }),
			...(tenancy && { tenancy }),
			...{ name, uid: owner.id?.uid ?? uid, region: "r1" },
		}),
	];
	const known = async () => {
		const status = (await beta.read(beta.id(Widget, "w")))?.status.references;
		return status?.conditions.find(({ type }) => type === "OwnersKnown");
	};
	return { lab, alpha, beta, widget, known };
}

/** Whether a mutation reports whether owners are known. */
function reportsOwners(each: Mutation): boolean {
	const conditions = each.op === "put" ? each.resource.status.references?.conditions : undefined;
	return conditions?.some(({ type }) => type === "OwnersKnown") ?? false;
}

describe("the pauses between questions about an owner", () => {
	it("grow to a minute, and are short again once something has changed", () => {
		const clock = new FakeClock();
		const unknown = new UnknownOwners(clock, defaultConstraintLimits);
		unknown.begin("s");
		const pauses = Array.from({ length: 8 }, () => unknown.failed("s", "a", "unreachable"));
		expect(pauses).toEqual([2, 4, 8, 16, 32, 60, 60, 60].map((seconds) => seconds * 1_000));
		expect(unknown.waitMs("s", "a")).toBe(60_000);
		unknown.hasten("s");
		expect(unknown.waitMs("s", "a")).toBeLessThanOrEqual(0);
		unknown.begin("s");
		expect(unknown.failed("s", "a", "unreachable")).toBe(2_000);
	});

	it("are left out once if something has changed during a check", () => {
		const unknown = new UnknownOwners(new FakeClock(), defaultConstraintLimits);
		const check = (during = () => {}) => {
			unknown.begin("s");
			during();
			const pauseMs = unknown.failed("s", "a", "unreachable");
			expect(unknown.waitMs("s", "a")).toBe(pauseMs);
			unknown.retain("s", new Set("a"));
			return pauseMs;
		};
		const hasten = () => unknown.hasten("s");
		expect([check(hasten), check(), check(), check(hasten), check()]).toEqual([
			0, 2_000, 4_000, 0, 2_000,
		]);
	});
});

describe("an owner of which is not known whether it is valid", () => {
	it("is asked about at once when a server gains the shard again, since something may have changed meanwhile", async () => {
		const { lab, alpha, beta, widget } = await ownedElsewhere();
		alpha.crash();
		await lab.run(beta.write(widget));
		const { context, store } = beta.current.constraints;
		const handlers = new HandlersOfHolds({
			context,
			holderQuery: new HolderQuery(context),
			store,
		});
		const name = shadowName(lab.keyOf(beta, beta.id(Widget, "w")));
		const pass = (hold: WorkHold) => lab.run(handlers.of(hold).handleShadow(name));
		const former = { fence: undefined };
		expect((await pass(former)).requeueAfterMs).toBe(2_000);
		await lab.pass(2_000);
		expect((await pass(former)).requeueAfterMs).toBe(4_000);
		expect((await pass(former)).requeueAfterMs).toBe(4_000);
		expect((await pass({ fence: undefined })).requeueAfterMs).toBe(2_000);
		await lab.run(alpha.start());
		expect(await pass({ fence: undefined })).toEqual({});
		expect((await beta.shadow(beta.id(Widget, "w")))?.metaOwners).toMatchObject([{ valid: true }]);
	});

	it("is reported after a while, and as known again", async () => {
		const { lab, alpha, beta, widget, known } = await ownedElsewhere();
		alpha.crash();
		await lab.run(beta.write(widget));
		await lab.pass(20_000);
		expect(await known()).toBeUndefined();
		await lab.pass(40_000);
		expect(await known()).toMatchObject({
			state: Condition_State.FALSE,
			message:
				"kept until it is known: alpha.Thing default/default/a (r1): alpha in r1 can't be queried",
		});
		const before = (await beta.read(beta.id(Widget, "w")))?.version;
		await lab.pass(3_600_000);
		expect((await beta.read(beta.id(Widget, "w")))?.version).toBe(before);
		await lab.run(alpha.start());
		await lab.pass(130_000);
		expect(await known()).toMatchObject({ state: Condition_State.TRUE });
		expect((await beta.shadow(beta.id(Widget, "w")))?.metaOwners).toMatchObject([{ valid: true }]);
	});

	it("is reported as soon as the storage has room for the report", async () => {
		let isFull = true;
		let refused = 0;
		const { lab, alpha, beta, widget, known } = await ownedElsewhere((backend) =>
			decorateBackend(backend, {
				commit: (mutations, options) => {
					if (isFull && mutations.some(reportsOwners)) {
						refused += 1;
						throw new Exhausted("the storage is full");
					}
					return backend.commit(mutations, options);
				},
			}),
		);
		alpha.crash();
		await lab.run(beta.write(widget));
		await lab.pass(300_000);
		expect(refused).toBeGreaterThan(0);
		expect(await known()).toBeUndefined();
		expect(beta.failures).toEqual([]);
		isFull = false;
		await lab.pass(120_000);
		expect(await known()).toMatchObject({ state: Condition_State.FALSE });
	});
});

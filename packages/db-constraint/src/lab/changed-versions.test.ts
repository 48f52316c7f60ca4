import type { Resource } from "@plinth/proto";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { newUlid, typeOf } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { Widget } from "../../testdata/types.ts";
import { Action, operatorsOf, restore } from "../deployments/settling.fixture.ts";
import { inVersion2, withFields, withRules } from "../simulation/schemas.fixture.ts";
import { anyone } from "./anyone.fixture.ts";
import {
	addSecond,
	beginDeletion,
	type Init,
	keepLost,
	type Rules,
	referenced,
	writeAsUser,
} from "./shared-targets.fixture.ts";
import { to, widget } from "./things.fixture.ts";

const { BLOCK, CASCADE, UNSET } = OnDelete;

/** A widget in version 1, which a user can write in version 2 with other rules or numbers of fields. */
async function inBoth(
	rules: { readonly v1: Rules; readonly v2: Rules },
	numbers: Parameters<typeof withFields>[1] = {},
) {
	const world = await referenced({ needs: to("a") }, rules.v1);
	const { lab, beta, w } = world;
	const v2 = withFields(withRules(inVersion2(Widget), rules.v2), numbers);
	await world.restartBeta([withRules(Widget, rules.v1), v2]);
	return {
		...{ ...world, world, v2 },
		/** @param init - the fields of version 1 that have the numbers of those of version 2. */
		async writeInV2(init: Init): Promise<void> {
			const stored = (await beta.read(w)) as Resource;
			const id = stored.id && { ...stored.id, type: typeOf(v2.type) };
			const typeUrl = `type.googleapis.com/${v2.schema.typeName}`;
			const data = { ...widget("w", init).data, typeUrl };
			const resource = { ...stored, id, data, generation: newUlid(lab.runtime) } as Resource;
			const put = { op: "put", resource, expectedVersion: stored.version } as const;
			await lab.run(beta.store.commit([put], { caller: anyone }));
		},
	};
}

describe("a resource that a user writes in another version of its type", () => {
	it("holds its targets in the fields of the same names, which have other numbers", async () => {
		const rules = { needs: BLOCK, belongs_to: CASCADE };
		const numbers = { needs: { number: 3 }, belongs_to: { number: 2 } };
		const { lab, alpha, a, writeInV2, recorded } = await inBoth({ v1: rules, v2: rules }, numbers);
		alpha.crash();
		await writeInV2({ belongsTo: to("a") });
		const { targetUid } = (await recorded()).get("needs") ?? {};
		expect(targetUid).not.toBe("");
		expect([...(await recorded()).values()]).toMatchObject([{ field: "3", rule: BLOCK }]);
		await lab.run(alpha.start());
		await expect(lab.run(alpha.delete(a))).rejects.toThrow("it is referenced by");
	});

	it("keeps the decision about each field of one target, though they swap their numbers", async () => {
		const rules = { needs: UNSET, belongs_to: UNSET };
		const numbers = { needs: { number: 3 }, belongs_to: { number: 2 } };
		const init = { needs: to("a"), belongsTo: to("a") };
		const { world, writeInV2, recorded } = await inBoth({ v1: rules, v2: rules }, numbers);
		await writeAsUser(world, world.beta.current.constraints.context.descriptor, init);
		const { uid } = (await restore(world.lab, world.alpha)).info;
		const operators = operatorsOf(world.lab, world.beta);
		const missing = await operators.missing(uid);
		const decided = missing.filter(({ path }) => path === "needs");
		await operators.settle(uid, Action.KEEP, decided);
		await writeInV2(init);
		const { needs, belongs_to } = Object.fromEntries(await recorded());
		expect(needs).toMatchObject({ field: "3", missing: { isKept: true } });
		expect(belongs_to).toMatchObject({ field: "2", missing: { isKept: false } });
	});

	const stricter = { v1: { needs: UNSET }, v2: { needs: BLOCK } };

	it("establishes its targets by the rules of that", async () => {
		const { lab, alpha, a, writeInV2 } = await inBoth(stricter);
		await writeInV2({ needs: to("a") });
		await expect(lab.run(alpha.delete(a))).rejects.toThrow("it is referenced by");
	});

	it.each([true, false])(
		"leaves them to their deployment: another one has the name, %s",
		async (hasName) => {
			const { world, lab, alpha, a, writeInV2, recorded } = await inBoth(stricter);
			const second = await addSecond(world);
			if (!hasName) {
				await lab.run(second.delete(a));
			}
			await writeInV2({ needs: to("a") });
			const record = { rule: BLOCK, deploymentUid: alpha.info.uid };
			expect([...(await recorded()).values()]).toMatchObject([record]);
		},
	);

	it("keeps what is lost and kept, by the same rule, also when version 1 is not registered", async () => {
		const same = { v1: { needs: UNSET }, v2: { needs: UNSET } };
		const { world, v2, writeInV2, recorded } = await inBoth(same);
		await keepLost(world);
		await world.restartBeta([v2]);
		await writeInV2({ needs: to("a") });
		expect([...(await recorded()).values()]).toMatchObject([{ missing: { isKept: true } }]);
	});

	it("is refused if such a target is being deleted", async () => {
		const { world, alpha, writeInV2 } = await inBoth(stricter);
		await beginDeletion(world, alpha);
		await expect(writeInV2({ needs: to("a") })).rejects.toThrow("is being deleted");
	});
});

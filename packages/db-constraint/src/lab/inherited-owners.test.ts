/** Owners that were valid for a deployment which has a successor. */
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { OwnerReferenceSchema, type Resource } from "@plinth/proto";
import { tenancyOf } from "@plinth/resource";
import { createMemoryBackend, decorateBackend } from "@plinth/storage";
import { describe, expect, it } from "vitest";
import { Thing, Widget } from "../../testdata/types.ts";
import { Action, operatorsOf, restore, startBoth } from "../deployments/settling.fixture.ts";
import { shadowName } from "../shadow/shadow.ts";
import { readShadow, recordId } from "../shadow/shadow-records.ts";
import { readDeploymentRecord } from "../succession/deployment-record.ts";
import type { Lab, LabDeployment, TransportDecorator } from "./lab.fixture.ts";
import { hooked, thing, widget } from "./things.fixture.ts";

type Flags = Partial<Pick<Resource["ownerReferences"][number], "unsetOnDelete">>;

/** The widget `w`, which the resource owns. */
function ownedBy({ id }: Resource, flags: Flags = {}): Resource {
	const { type, tenancy, name = "", uid = "" } = id ?? {};
	const init = { name, uid, region: "r1", ...flags };
	const reference = create(OwnerReferenceSchema, {
		...init,
		...(type && { type }),
		...(tenancy && { tenancy }),
	});
	return { ...widget("w"), ownerReferences: [reference] };
}

/** The thing `a` owns the widget `w` of another deployment, which has recorded that this is valid. */
async function owned(flags: Flags = {}, transport?: TransportDecorator) {
	const { lab, alpha, beta } = await startBoth({ ...(transport && { transport }) });
	const a = await lab.run(alpha.write(thing("a")));
	const w = beta.id(Widget, "w");
	await lab.run(beta.write(ownedBy(a, flags)));
	await lab.pass(5_000);
	expect((await beta.shadow(w))?.metaOwners).toMatchObject([{ valid: true }]);
	return { lab, alpha, beta, a, w, aId: alpha.id(Thing, "a") };
}

/** A restore has lost `a`. */
async function lost(flags: Flags = {}) {
	const all = await owned(flags);
	const { lab, alpha, beta } = all;
	const { uid } = (await restore(lab, alpha)).info;
	const operators = operatorsOf(lab, beta);
	const missing = await operators.missing(uid);
	expect(missing).toHaveLength(1);
	const keep = () => operators.settle(uid, Action.KEEP, missing);
	return { ...all, uid, keep };
}

/** The resource `w` and its shadow, as they are stored. */
async function backupOf(lab: Lab, deployment: LabDeployment) {
	const id = deployment.id(Widget, "w");
	const shadow = await readShadow(deployment.backend, shadowName(lab.keyOf(deployment, id)));
	return [await deployment.read(id), shadow?.resource].filter((each) => each !== undefined);
}

describe("owners that a restore has lost", () => {
	it.each([false, true])(
		"stay held when the deployment of what they own is restored too (kept by operators: %s)",
		async (isKept) => {
			const { lab, beta, w, uid, keep } = await lost();
			if (isKept) {
				expect(await keep()).toEqual(["SETTLED"]);
			}
			await lab.pass(120_000);
			const after = await restore(lab, beta, await backupOf(lab, beta));
			await lab.pass(120_000);
			expect(await after.read(w)).toBeDefined();
			expect(await operatorsOf(lab, after).missing(uid)).toMatchObject([{ isKept }]);
		},
	);

	it("are held if the deployment of what they own was restored before it could notice", async () => {
		const { lab, alpha, beta, w } = await owned();
		const backup = await backupOf(lab, beta);
		beta.crash();
		const { uid } = (await restore(lab, alpha)).info;
		const after = await restore(lab, beta, backup);
		await lab.pass(120_000);
		expect(await after.read(w)).toBeDefined();
		expect(await operatorsOf(lab, after).missing(uid)).toHaveLength(1);
	});

	it("are not those that were deleted after what they own was backed up, while their deployment stays", async () => {
		const { lab, alpha, beta, w, aId } = await owned();
		const backup = await backupOf(lab, beta);
		await lab.run(alpha.delete(aId));
		await lab.pass(60_000);
		expect(await alpha.read(aId)).toBeUndefined();
		const after = await restore(lab, beta, backup);
		await lab.pass(120_000);
		expect(await after.read(w)).toBeUndefined();
	});

	it("are queried again though another deployment changes the shadow of what they own meanwhile", async () => {
		const { lab, alpha, beta, w, aId } = await owned();
		const backup = await backupOf(lab, beta);
		await lab.run(alpha.delete(aId));
		await lab.pass(60_000);
		const stored = createMemoryBackend({ runtime: lab.runtime });
		const name = shadowName(lab.keyOf(beta, w));
		let changes = 0;
		const backend = decorateBackend(stored, {
			async commit(mutations, options) {
				const isReverting = mutations.some(
					(each) =>
						each.op === "put" && each.expectedVersion !== "" && each.resource.id?.name === name,
				);
				if (isReverting && changes < 2) {
					changes += 1;
					const resource = await stored.lookup(recordId(name));
					expect(resource).toBeDefined();
					if (resource !== undefined) {
						const { version } = resource;
						await stored.commit([{ op: "put", resource, expectedVersion: version }]);
					}
				}
				return stored.commit(mutations, options);
			},
		});
		const after = await restore(lab, beta, backup, { backend });
		await lab.pass(120_000);
		expect(changes).toBe(2);
		expect(await after.read(w)).toBeUndefined();
	});

	it.each([
		[true, false, false],
		[true, false, true],
		[false, true, false],
	])(
		"stay held when users change unset_on_delete from %s to %s (kept by operators: %s)",
		async (before, unsetOnDelete, isKept) => {
			const { lab, beta, a, w, uid, keep } = await lost({ unsetOnDelete: before });
			if (isKept) {
				expect(await keep()).toEqual(["SETTLED"]);
			}
			await lab.run(beta.write(ownedBy(a, { unsetOnDelete })));
			await lab.pass(120_000);
			expect((await beta.read(w))?.ownerReferences).toHaveLength(1);
			expect(await operatorsOf(lab, beta).missing(uid)).toMatchObject([{ isKept }]);
		},
	);

	it("are removed as operators decide, though a release no longer registers the type that fills in their tenancy", async () => {
		const { lab, alpha, beta, a, w } = await owned();
		const reference = ownedBy(a, { unsetOnDelete: true });
		for (const each of reference.ownerReferences) {
			each.tenancy = tenancyOf({});
		}
		await lab.run(beta.write(reference));
		await lab.pass(5_000);
		beta.crash();
		Object.assign(beta.spec, { foreignTypes: [] });
		await lab.run(beta.start());
		const { uid } = (await restore(lab, alpha)).info;
		const operators = operatorsOf(lab, beta);
		const missing = await operators.missing(uid);
		expect(await operators.settle(uid, Action.UNSET, missing)).toEqual(["SETTLED"]);
		expect((await beta.read(w))?.ownerReferences).toEqual([]);
	});

	it("are held if users change a flag before the restore is noticed", async () => {
		const { lab, alpha, beta, a, w } = await owned({ unsetOnDelete: true });
		alpha.crash();
		await lab.run(beta.write(ownedBy(a, { unsetOnDelete: false })));
		const { uid } = (await restore(lab, alpha)).info;
		await lab.pass(120_000);
		expect(await beta.read(w)).toBeDefined();
		expect(await operatorsOf(lab, beta).missing(uid)).toHaveLength(1);
	});
});

describe("owners that a restored deployment has", () => {
	it("are not deleted there before their holders have told it what they own", async () => {
		let failing = false;
		const transport = hooked(async (method) => {
			if (failing && method === "CheckMetaOwners") {
				throw new ConnectError("lost", Code.Unavailable);
			}
		});
		const { lab, alpha, beta, a, w, aId } = await owned({}, transport);
		failing = true;
		const restored = await restore(lab, alpha, [a]);
		await expect(lab.run(restored.delete(aId))).rejects.toThrow("nothing can be deleted yet");
		failing = false;
		await lab.pass(60_000);
		await lab.run(restored.delete(aId));
		await lab.pass(300_000);
		expect(await restored.read(aId)).toBeUndefined();
		expect(await beta.read(w)).toBeUndefined();
	});

	it("are told to it again if it could not say whether it has them", async () => {
		let isUnknown = false;
		const { lab, alpha, beta, a, w, aId } = await owned({}, (transport) => ({
			stream: (...args) => transport.stream(...args),
			unary(method, signal, timeoutMs, header, input, ...rest) {
				const isAsked = method.name === "CheckMetaOwners" && isUnknown;
				const sent = isAsked ? Object.assign({}, input, { ownerships: [] }) : input;
				return transport.unary(method, signal, timeoutMs, header, sent, ...rest);
			},
		}));
		isUnknown = true;
		const restored = await restore(lab, alpha, [a], { noticedMs: 10_000 });
		await expect(lab.run(restored.delete(aId))).rejects.toThrow("nothing can be deleted yet");
		isUnknown = false;
		await lab.pass(10_000);
		await lab.run(restored.delete(aId));
		await lab.pass(300_000);
		expect(await restored.read(aId)).toBeUndefined();
		expect(await beta.read(w)).toBeUndefined();
	});

	it("delay a report no longer than a while if their deployment does not know their type", async () => {
		const { lab, alpha, beta, a, w } = await owned();
		Object.assign(alpha.spec, { types: [Widget] });
		const restored = await restore(lab, alpha, [a]);
		await lab.pass(60_000);
		const record = await readDeploymentRecord(restored.backend);
		expect(record?.establishedBy).toEqual([beta.info.uid]);
		expect(await beta.read(w)).toBeDefined();
	});
});

import { create } from "@bufbuild/protobuf";
import { OwnerReferenceSchema, type Resource } from "@plinth/proto";
import { allowed, type Caller, CallerToken, referenceTo } from "@plinth/resource";
import { Thing, ThingSchema, Widget, WidgetSchema } from "../../testdata/types.ts";
import { type Lab, type LabDeployment, make } from "../lab/lab.fixture.ts";
import { reestablishOwnReferences } from "../succession/succession.ts";

/** A user without a token, who may name and read everything. */
const user: Caller = {
	token: new CallerToken(undefined),
	decideReference: () => allowed,
	mayRead: () => true,
};

/**
 * Two deployments that call each other by every method of the protocol. It uses only what the laboratory of the previous
 * release has too, since it is copied there to record the exchanges of that one.
 *
 * @param note - is called with each uid and a name for it.
 * @param plan - plans the deletion of a thing of the deployment. Not in version 1 of the protocol.
 * @returns what has become of the resources.
 */
export async function runScenario(
	lab: Lab,
	note: (name: string, uid: string) => void,
	plan?: (deployment: LabDeployment, thing: Resource) => Promise<unknown>,
): Promise<Readonly<Record<string, unknown>>> {
	let alpha = await lab.add({ name: "alpha", service: "alpha", region: "r1", types: [Thing] });
	note("alpha", alpha.info.uid);
	const beta = await lab.add({
		...{ name: "beta", service: "beta", region: "r1" },
		...{ types: [Widget], foreignTypes: [Thing] },
	});
	note("beta", beta.info.uid);
	await lab.pass(1_000);
	const things = new Map<string, Resource>();
	for (const name of ["a", "b", "c"]) {
		const thing = await lab.run(alpha.write(make(Thing, name, create(ThingSchema))));
		note(`alpha/${name}`, thing.id?.uid ?? "");
		things.set(name, thing);
	}
	const to = (name: string) => referenceTo({ type: Thing.type, name });
	const write = async (name: string, init: Parameters<typeof create<typeof WidgetSchema>>[1]) => {
		const widget = make(Widget, name, create(WidgetSchema, init));
		const written = await lab.run(beta.write(widget, "", user));
		note(`beta/${name}`, written.id?.uid ?? "");
		await lab.pass(1_000);
	};
	await write("needy", { needs: to("a") });
	await write("fond", { likes: [to("b")] });
	const owned = make(Widget, "owned", create(WidgetSchema));
	const { id: owner } = things.get("c") ?? {};
	const ownerReference = create(OwnerReferenceSchema, {
		...{ name: "c", uid: owner?.uid ?? "", region: "r1" },
		...(owner?.type && { type: owner.type }),
		...(owner?.tenancy && { tenancy: owner.tenancy }),
	});
	const written = await lab.run(
		beta.write({ ...owned, ownerReferences: [ownerReference] }, "", user),
	);
	note("beta/owned", written.id?.uid ?? "");
	await lab.pass(5_000);

	const exists = async (name: string) => (await alpha.read(alpha.id(Thing, name))) !== undefined;
	const outcome: Record<string, unknown> = {};
	outcome.refusal = await lab.run(alpha.delete(alpha.id(Thing, "a"))).then(
		() => "none",
		({ message }: Error) => message,
	);
	await lab.run(alpha.delete(alpha.id(Thing, "b")));
	await lab.pass(5_000);
	outcome.hasB = await exists("b");
	await lab.run(alpha.delete(alpha.id(Thing, "c")));
	await lab.pass(120_000);
	outcome.hasC = await exists("c");
	outcome.hasOwned = (await beta.read(beta.id(Widget, "owned"))) !== undefined;
	const confirmed = await alpha.shadow(alpha.id(Thing, "a"));
	outcome.isConfirmed = confirmed?.sources.every(({ tentative }) => !tentative);

	const stored = await alpha.read(alpha.id(Thing, "a"));
	const kept = stored === undefined ? [] : [stored];
	await Promise.all(kept.map((thing) => plan?.(alpha, thing)));

	alpha = await lab.succeed(alpha, kept);
	note("alpha, restored", alpha.info.uid);
	const { signal } = new AbortController();
	await lab.run(reestablishOwnReferences(alpha.current.constraints.context, signal));
	Object.assign(alpha.info, { established: true });
	lab.changed();
	await lab.pass(60_000);
	const shadow = await alpha.shadow(alpha.id(Thing, "a"));
	outcome.isHeldAgain = shadow?.sources.map(({ deployment }) => deployment?.service);
	return outcome;
}

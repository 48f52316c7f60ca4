import { create } from "@bufbuild/protobuf";
import { type ResourceType, typeOf } from "@plinth/resource";
import { describe, expect, it, vi } from "vitest";
import { Thing, ThingSchema, Widget } from "../../testdata/types.ts";
import { make } from "../lab/lab.fixture.ts";
import { to, widget } from "../lab/things.fixture.ts";
import { ResourceShadow, recordOf } from "../shadow/shadow-records.ts";
import { RegistryLab, type Started } from "./registry-lab.fixture.ts";

const patiently = { timeout: 300_000 };
const address = "http://beta";

/** The names of the resources of a type that are left. */
async function left(
	{ client }: Started,
	{ type }: Pick<ResourceType, "type">,
): Promise<readonly string[]> {
	const tenancy = { partition: "default", namespace: "default" };
	const { resources } = await client.list({ type: typeOf(type), tenancy });
	return resources.map(({ id }) => id?.name ?? "");
}

/** The records of the servers of a deployment: each with its announced address, and with the direct one if it has that. */
async function endpoints({ backend }: Started): Promise<readonly string[]> {
	const { resources } = await backend.list({
		type: ResourceShadow.type,
		tenancy: { partition: "", namespace: "" },
		namePrefix: "endpoint-",
	});
	return resources
		.flatMap((resource) => {
			const { record } = recordOf(resource);
			return record.case === "endpoint"
				? `${record.value.address} ${record.value.directAddress}`.trim()
				: [];
		})
		.sort();
}

/** Where a server reaches the others of its deployment. */
function addressesOf({ registry }: Started): readonly string[] {
	return registry.siblings().map((each) => each.address);
}

/** Deployments of a registry, of things and of widgets. That of widgets has two servers behind one address. */
async function balanced() {
	const lab = new RegistryLab();
	await lab.start("meta", "r1");
	const alpha = await lab.start("alpha", "r1", { address: "http://alpha" });
	const one = await lab.start("beta", "r1", { address, directAddress: "http://beta-1" });
	const { backend } = one;
	const two = await lab.start("beta", "r1", { address, directAddress: "http://beta-2", backend });
	await vi.waitFor(
		async () =>
			expect(await endpoints(one)).toEqual([
				`${address} http://beta-1`,
				`${address} http://beta-2`,
			]),
		patiently,
	);
	return { lab, alpha, one, two };
}

describe("servers behind one address", () => {
	it("apply the deletions of other deployments, whichever of them the address leads to", async () => {
		const { alpha, one } = await balanced();
		const names = Array.from({ length: 24 }, (_, at) => `t${at}`);
		for (const [at, name] of names.entries()) {
			await alpha.client.write({ resource: make(Thing, name, create(ThingSchema)) });
			const data = at % 2 === 0 ? { belongsTo: to(name) } : { likes: [to(name)] };
			await one.client.write({ resource: widget(`w-${name}`, data) });
		}
		for (const name of names) {
			await alpha.client.delete({ id: make(Thing, name, create(ThingSchema)).id });
		}
		await vi.waitFor(async () => expect(await left(alpha, Thing)).toEqual([]), patiently);
		expect(await left(one, Widget)).toHaveLength(names.length / 2);
	});

	it("know each other by their direct addresses", async () => {
		const { lab, one, two } = await balanced();
		expect(addressesOf(one)).toEqual(["http://beta-2"]);
		expect(addressesOf(two)).toEqual(["http://beta-1"]);
		// With TLS, the certificate of a server may be for this host alone.
		expect(lab.announced.get("http://beta-2")).toBe(address);
		await two.stop();
		await vi.waitFor(() => expect(addressesOf(one)).toEqual([]), patiently);
		expect(one.registry.registeredAddress).toBe(address);
	});

	it("know one that is older than direct addresses by that address, as long as it runs", async () => {
		const lab = new RegistryLab();
		await lab.start("meta", "r1");
		const old = await lab.start("beta", "r1", { address });
		const { backend } = old;
		const next = await lab.start("beta", "r1", {
			address,
			directAddress: "http://beta-2",
			backend,
		});
		const ofNext = `${address} http://beta-2`;
		await vi.waitFor(
			async () => expect(await endpoints(next)).toEqual([address, ofNext]),
			patiently,
		);
		await vi.waitFor(() => expect(addressesOf(next)).toEqual([address]), patiently);
		await old.stop();
		await vi.waitFor(async () => expect(await endpoints(next)).toEqual([ofNext]), patiently);
		await vi.waitFor(() => expect(addressesOf(next)).toEqual([]), patiently);

		const older = await lab.start("beta", "r1", { address, backend });
		await vi.waitFor(() => expect(addressesOf(next)).toEqual([address]), patiently);
		await next.stop();
		await vi.waitFor(async () => expect(await endpoints(older)).toEqual([address]), patiently);
		expect(older.registry.registeredAddress).toBe(address);
	});
});

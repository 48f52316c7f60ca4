import { Code, ConnectError } from "@connectrpc/connect";
import type { ResourceType } from "@plinth/resource";
import { decorateBackend } from "@plinth/storage";
import { describe, expect, it } from "vitest";
import { Thing, Widget } from "../../testdata/types.ts";
import { anyone } from "../lab/anyone.fixture.ts";
import { Lab, type LabDeployment } from "../lab/lab.fixture.ts";
import {
	alphaIn,
	betaIn,
	ThingV2,
	thingOf,
	WidgetV2,
	widgetIn,
} from "../lab/two-versions.fixture.ts";
import { readRecord } from "../shadow/shadow-records.ts";
import { descriptorRecord } from "./descriptor-record.ts";
import { SchemaPass } from "./schema-pass.ts";
import { ServiceDescriptor } from "./service-descriptor.ts";

/** A laboratory in which no deployment follows another one. */
function withoutWatches(seed: number): Lab {
	return new Lab(seed, {}, (transport) => ({
		unary: (...args) => transport.unary(...args),
		stream: () => Promise.reject(new ConnectError("no watches", Code.Unavailable)),
	}));
}

async function turns({ runtime }: Lab, count: number): Promise<void> {
	for (let turn = 0; turn < count; turn++) {
		await runtime.scheduler.pause();
	}
}

/** Activates a schema with these types, as another server of the deployment does when it starts. */
function activate({ current, spec }: LabDeployment, types: readonly ResourceType[]) {
	const descriptor = new ServiceDescriptor({ types, service: spec.service });
	const pass = new SchemaPass({ ...current.constraints.context, descriptor });
	return (options?: { readonly dropsInUse: boolean }) => pass.begin(options);
}

/** `alpha` in v1 and v2, with the thing `a`, and a server of it that starts without v1. */
async function alphaInBoth(lab = new Lab(1)) {
	const alpha = await alphaIn(lab, "r1", [Thing, ThingV2]);
	await lab.run(alpha.write(thingOf(alpha, "a")));
	const activeTypes = async () => {
		const stored = await readRecord(alpha.backend, descriptorRecord);
		return stored?.record.case === "descriptor" ? stored.record.value.servedTypes : [];
	};
	const write = (from: LabDeployment, version: "v1" | "v2", name = "w") =>
		lab.run(from.write(widgetIn(version, name, { needs: alpha }), "", anyone));
	const beginWithoutV1 = activate(alpha, [ThingV2]);
	const withoutV1: typeof beginWithoutV1 = (options) => lab.run(beginWithoutV1(options));
	return { lab, alpha, beginWithoutV1, withoutV1, activeTypes, write };
}

const ofBeta = "beta in r1 (beta-r1)";
const both = ["alpha.v1.Thing", "alpha.v2.Thing"];

describe("a schema without a version that is served", () => {
	it("is refused by name while another deployment references its types, and changes nothing", async () => {
		const { lab, alpha, withoutV1, activeTypes, write } = await alphaInBoth();
		const beta = await betaIn(lab, "r1", [Widget]);
		await write(beta, "v1");
		const before = await readRecord(alpha.backend, descriptorRecord);
		await expect(withoutV1()).rejects.toThrow(
			`no modules that serve what alpha in r1 has served: alpha.v1.Thing, which is referenced by ${ofBeta}. Update these deployments first, or start this server with --drop-versions-in-use`,
		);
		expect(await readRecord(alpha.backend, descriptorRecord)).toEqual(before);
		await write(beta, "v1", "another");
		expect(await activeTypes()).toEqual(both);
	});

	it("is refused for a deployment that follows it and references nothing yet", async () => {
		const { lab, withoutV1 } = await alphaInBoth();
		await betaIn(lab, "r1", [Widget]);
		await lab.pass(1_000);
		await expect(withoutV1()).rejects.toThrow(ofBeta);
	});

	it("is refused for a deployment that has established references before it follows", async () => {
		const { lab, withoutV1, write } = await alphaInBoth(withoutWatches(1));
		await write(await betaIn(lab, "r1", [Widget]), "v1");
		await expect(withoutV1()).rejects.toThrow(ofBeta);
	});

	it("becomes active once all who have referenced it are updated", async () => {
		const { lab, withoutV1, activeTypes, write } = await alphaInBoth();
		const beta = await betaIn(lab, "r1", [Widget]);
		await write(beta, "v1");
		beta.crash();
		Object.assign(beta.spec, { types: [WidgetV2] });
		await lab.run(beta.start());
		await lab.pass(1_000);
		await withoutV1();
		expect(await activeTypes()).toEqual(["alpha.v2.Thing"]);
	});

	it("becomes active by force, and then no reference by that version is established", async () => {
		const { lab, alpha, withoutV1, activeTypes, write } = await alphaInBoth();
		const beta = await betaIn(lab, "r1", [Widget, WidgetV2]);
		await write(beta, "v1");
		await withoutV1({ dropsInUse: true });
		expect(await activeTypes()).toEqual(["alpha.v2.Thing"]);
		// The server that has the version still runs.
		expect(alpha.current.constraints.context.descriptor.servedTypes).toEqual(both);
		await expect(write(beta, "v1", "new")).rejects.toThrow(
			"alpha in r1 does not serve alpha.v1.Thing, only v2",
		);
		await write(beta, "v2", "newer");
	});

	it("becomes active once who has referenced it neither imports the service nor references anything", async () => {
		const { lab, alpha, write } = await alphaInBoth();
		const beta = await betaIn(lab, "r1", [Widget]);
		await write(beta, "v1");
		const { context } = alpha.current.constraints;
		const environment = { ...context.environment, imports: () => false };
		const descriptor = new ServiceDescriptor({ types: [ThingV2], service: "alpha" });
		const pass = new SchemaPass({ ...context, environment, descriptor });
		await expect(lab.run(pass.begin())).rejects.toThrow(ofBeta);
		await lab.run(beta.delete(beta.id(Widget, "w")));
		await lab.run(alpha.delete(alpha.id(Thing, "a")));
		await lab.pass(5_000);
		await lab.run(pass.begin());
	});

	it("becomes active if another deployment has taken over from the one that has referenced it", async () => {
		const { lab, withoutV1, write } = await alphaInBoth(withoutWatches(1));
		const beta = await betaIn(lab, "r1", [Widget]);
		await write(beta, "v1");
		await expect(withoutV1()).rejects.toThrow(ofBeta);
		await lab.succeed(beta, []);
		await withoutV1();
	});

	it("becomes active if the deployment that has referenced it is deleted", async () => {
		const { lab, withoutV1, write } = await alphaInBoth();
		const beta = await betaIn(lab, "r1", [Widget]);
		await write(beta, "v1");
		lab.retire(beta);
		await withoutV1();
	});

	it("is refused for another deployment of the service only if that has no version which is left", async () => {
		const { lab, alpha, withoutV1 } = await alphaInBoth();
		const other = await alphaIn(lab, "r2", [Thing]);
		await lab.pass(1_000);
		await expect(withoutV1()).rejects.toThrow("alpha in r2 (alpha-r2)");
		other.crash();
		Object.assign(other.spec, { types: [Thing, ThingV2] });
		await lab.run(other.start());
		await lab.pass(1_000);
		await withoutV1();
		expect(alpha.failures).toEqual([]);
	});

	it("is refused if another deployment has referenced it since the followers were read", async () => {
		const { lab, alpha } = await alphaInBoth(withoutWatches(1));
		const beta = await betaIn(lab, "r1", [Widget]);
		const { context } = alpha.current.constraints;
		let established: Promise<unknown> | undefined;
		const backend = decorateBackend(context.backend, {
			async commit(mutations, options) {
				established ??= beta.write(widgetIn("v1", "w", { needs: alpha }), "", anyone);
				await established;
				return context.backend.commit(mutations, options);
			},
		});
		const descriptor = new ServiceDescriptor({ types: [ThingV2], service: "alpha" });
		const pass = new SchemaPass({ ...context, backend, descriptor });
		await expect(lab.run(pass.begin())).rejects.toThrow(ofBeta);
	});

	it("and an establishment by that version at the same time: one of them is refused", async () => {
		const first = new Set<string>();
		for (let seed = 0; seed < 40; seed++) {
			const { lab, alpha, beginWithoutV1 } = await alphaInBoth(withoutWatches(seed));
			const beta = await betaIn(lab, "r1", [Widget]);
			const widget = widgetIn("v1", "w", { needs: alpha });
			const outcomes = Promise.allSettled([
				beta.write(widget, "", anyone),
				turns(lab, seed % 20).then(() => beginWithoutV1()),
			]);
			const [written, dropped] = await lab.run(outcomes);
			expect(written.status, `seed ${seed}`).not.toBe(dropped.status);
			first.add(written.status);
			expect(alpha.failures).toEqual([]);
		}
		expect(first.size).toBe(2);
	});
});

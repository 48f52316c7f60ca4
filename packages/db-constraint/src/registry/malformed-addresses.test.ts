import { create } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { DeploymentSchema } from "@plinth/proto/gen/plinth/meta/v1/meta_pb.js";
import { SchemaMixinService } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { idOf, resourceOf } from "@plinth/resource";
import { type Logger, silentLogger } from "@plinth/runtime";
import { describe, expect, it, vi } from "vitest";
import { connectAnywhere } from "../protocol/server-address.ts";
import { Deployment, metaService } from "./meta-types.ts";
import { RegistryLab, type Started, whenKnown } from "./registry-lab.fixture.ts";

const timeout = 300_000;
const id = idOf(Deployment, "meta-r2");
const malformed = "10.0.0.9:7576";

function metaAt(address: string) {
	const data = create(DeploymentSchema, { service: metaService, region: "r2", address });
	return resourceOf(Deployment, { id, data });
}

/** Stores a Deployment as a server does that accepts each address, and as other deployments report one. */
async function store({ backend }: Started, address: string) {
	const resource = { ...metaAt(address), id: { ...id, uid: "01METATWO" } };
	await backend.commit([{ op: "put", resource, expectedVersion: "" }]);
}

describe("a meta deployment whose Deployment has a malformed address", () => {
	it("stops nobody, is unknown until the address is corrected, and is followed then", async () => {
		const lab = new RegistryLab();
		const meta = await lab.start("meta", "r1");
		const warnings: unknown[] = [];
		const warn: Logger["warn"] = (fields) => warnings.push(fields);
		const logger: Logger = { ...silentLogger, warn };
		const alpha = await lab.start("alpha", "r1", { logger });
		const { registry } = alpha;
		await whenKnown(registry, () => registry.isComplete);
		await store(meta, malformed);
		await whenKnown(registry, () => registry.deployments().some(({ name }) => name === "meta-r2"));
		expect(registry.isComplete).toBe(false);
		expect(warnings).toContainEqual({ deployment: "meta-r2", address: malformed });

		const beta = await lab.start("beta", "r1");
		await whenKnown(registry, () => registry.byUid(beta.registry.self.uid) !== undefined);
		await alpha.stop();
		const again = await lab.start("alpha", "r1", { backend: alpha.backend });
		expect(again.registry.isComplete).toBe(false);

		await lab.start("meta", "r2", { metas: [] });
		const gamma = await lab.start("alpha", "r2", { metas: ["meta-r2"] });
		await lab.change(meta, "meta-r2", { address: "http://meta-r2" });
		for (const { registry } of [again, beta]) {
			await whenKnown(registry, () => registry.byUid(gamma.registry.self.uid) !== undefined);
			await whenKnown(registry, () => registry.isComplete);
			expect(registry.outdatedSince).toBeUndefined();
		}
		expect([alpha, again, beta].flatMap(({ failures }) => failures)).toEqual([]);
	});

	it("is refused, and one that is stored can be deleted", async () => {
		const lab = new RegistryLab();
		const meta = await lab.start("meta", "r1");
		for (const address of [malformed, "localhost:7576", "ftp://meta", "meta"]) {
			await expect(meta.client.write({ resource: metaAt(address) })).rejects.toMatchObject({
				code: Code.InvalidArgument,
				rawMessage: expect.stringContaining(`address "${address}" is not an http or https URL`),
			});
		}
		await store(meta, malformed);
		const { registry } = await lab.start("alpha", "r1");
		expect(registry.isComplete).toBe(false);
		await meta.client.delete({ id });
		await whenKnown(registry, () => registry.isComplete);
	});
});

it("a call to a malformed address fails as one to a server that does not respond", async () => {
	const transport = connectAnywhere((address) => {
		throw new TypeError(`${address} is no URL`);
	})(malformed);
	const { watchImportedServiceDeletions: stream, reportReleases: unary } =
		SchemaMixinService.method;
	const expected = { code: Code.Unavailable, rawMessage: expect.stringContaining(malformed) };
	const unaryCall = transport.unary(unary, undefined, undefined, undefined, {});
	await expect(unaryCall).rejects.toMatchObject(expected);
	const messages = (async function* () {})();
	const streamCall = transport.stream(stream, undefined, undefined, undefined, messages);
	await expect(streamCall).rejects.toMatchObject(expected);
});

it("a server stops if it can no longer follow the registry", async () => {
	const lab = new RegistryLab();
	const meta = await lab.start("meta", "r1");
	const alpha = await lab.start("alpha", "r1");
	const failure = new Error("a listener has failed");
	alpha.registry.onChange(() => {
		throw failure;
	});
	await meta.stop();
	await vi.waitFor(() => expect(alpha.failures).toContain(failure), { timeout });
});

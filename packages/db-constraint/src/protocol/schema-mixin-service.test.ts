import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createInProcessTransport } from "@plinth/in-process";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { SchemaMixinService } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { decorateBackend } from "@plinth/storage";
import { describe, expect, it } from "vitest";
import { Thing } from "../../testdata/types.ts";
import { anyone } from "../lab/anyone.fixture.ts";
import { Lab } from "../lab/lab.fixture.ts";
import { oneDeployment, thing, to } from "../lab/things.fixture.ts";
import { keyOf } from "../shadow/resource-key.ts";
import { shadowName } from "../shadow/shadow.ts";
import { createSchemaMixinService } from "./schema-mixin-service.ts";

/** Calls a deployment with one uid with a request for another one. */
async function call(uid: string, toUid: string): Promise<unknown> {
	const lab = new Lab(1);
	const deployment = await lab.add({ name: "a", service: "alpha", region: "r1", types: [Thing] });
	const { context } = deployment.running?.constraints ?? expect.fail("it runs");
	const self = { ...deployment.info, uid };
	const service = createSchemaMixinService({
		...context,
		environment: { ...context.environment, self },
	});
	const transport = createInProcessTransport(
		(router) => router.service(SchemaMixinService, service),
		lab.runtime,
	);
	const route = { from: { uid: "other", service: "beta" }, toUid };
	return lab.run(createClient(SchemaMixinService, transport).checkReferences({ route }));
}

describe("the schema mixin service", () => {
	it("refuses requests for a deployment with another uid", async () => {
		await expect(call("mine", "theirs")).rejects.toThrow("not the one with uid theirs");
		await expect(call("mine", "mine")).resolves.toMatchObject({ answers: [] });
	});

	it("responds that it is starting while it has no uid", async () => {
		await expect(call("", "theirs")).rejects.toThrow("has not registered yet");
		await expect(call("", "")).rejects.toThrow("has not registered yet");
	});

	it("decides all questions of a request if the caller of one can't be checked, and names nothing to that one", async () => {
		const { lab, alpha, id } = await oneDeployment();
		const target = await lab.run(alpha.write(thing("t")));
		await lab.run(alpha.write(thing("other", { needs: to("t") })));
		const authenticate = async (token: string | undefined) => {
			if (token === "unchecked") {
				throw new ConnectError("the keys can't be fetched", Code.Unavailable);
			}
			return anyone;
		};
		const { context } = alpha.current.constraints;
		const service = createSchemaMixinService({
			...{ ...context, callers: { isOpen: false, authenticate } },
			environment: { ...context.environment, successorOf: () => undefined },
		});
		const transport = createInProcessTransport(
			(router) => router.service(SchemaMixinService, service),
			lab.runtime,
		);
		const question = (token: string) =>
			({
				...{ target: keyOf(id("t"), ""), targetUid: target.id?.uid ?? "" },
				caller: { caller: { case: "user", value: { token } } },
			}) as const;
		const response = await lab.run(
			createClient(SchemaMixinService, transport).checkReferences({
				route: { from: { uid: "other", service: "beta" }, toUid: alpha.info.uid },
				questions: [question("unchecked"), question("accepted")],
			}),
		);
		const [unchecked, accepted] = response.answers;
		expect([unchecked, accepted]).toMatchObject([
			{ rule: OnDelete.BLOCK, blockers: [], hiddenBlockers: 1 },
			{ rule: OnDelete.BLOCK, blockers: [{ name: "other" }], hiddenBlockers: 0 },
		]);
	});

	it("does not begin what callers that have gone wanted to establish, and completes a commit in progress", async () => {
		const lab = new Lab(1);
		let commits = 0;
		let lasts: Promise<void> | undefined;
		const alpha = await lab.add(
			{ name: "alpha", service: "alpha", region: "r1", types: [Thing] },
			(backend) =>
				decorateBackend(backend, {
					commit: async (mutations, options) => {
						commits += lasts === undefined ? 0 : 1;
						await lasts;
						return backend.commit(mutations, options);
					},
				}),
		);
		const beta = await lab.add({ name: "beta", service: "beta", region: "r1", types: [Thing] });
		const names = Array.from({ length: 30 }, (_, at) => `t${at}`);
		for (const name of names) {
			await lab.run(alpha.write(thing(name)));
		}
		const call = (targets: readonly string[], signal?: AbortSignal) =>
			lab.client(beta, alpha).establishReferences(
				{
					route: { from: { uid: beta.info.uid, service: "beta" }, toUid: alpha.info.uid },
					targets: targets.map((name) => ({
						key: lab.keyOf(alpha, thing(name).id ?? expect.fail("it has an ID")),
						rules: [OnDelete.BLOCK],
					})),
				},
				...(signal ? [{ signal }] : []),
			);
		// Their shadows exist from now on, so that one commit establishes up to 24 of them.
		await lab.run(call(names));
		const sources = async () => (await alpha.shadow(alpha.id(Thing, "t0")))?.sources ?? [];
		const [before] = await sources();
		const caller = new AbortController();
		const ends = Promise.withResolvers<void>();
		lasts = ends.promise;
		const gone = Promise.allSettled([
			call(names, caller.signal),
			...names.map((name) => call(["t0", name], caller.signal)),
		]);
		await lab.pass(1_000);
		caller.abort();
		const waits = call(["t0"]);
		await lab.pass(1_000);
		ends.resolve();
		await lab.run(waits);
		for (const { status } of await lab.run(gone)) {
			expect(status).toBe("rejected");
		}
		expect(commits).toBe(2);
		const [after] = await sources();
		expect(after?.establishment).not.toBe(before?.establishment);
	});

	it("establishes later than the shadow of the target was created: a commit that creates it could not know what was there before", async () => {
		const lab = new Lab(1);
		let shadow: string | undefined;
		let createdAt: bigint | undefined;
		const alpha = await lab.add(
			{ name: "alpha", service: "alpha", region: "r1", types: [Thing] },
			(backend) =>
				decorateBackend(backend, {
					commit: async (mutations, options) => {
						const creates = mutations.some(
							(each) => each.op === "put" && each.resource.id?.name === shadow,
						);
						const result = await backend.commit(mutations, options);
						createdAt ??= creates ? BigInt(result.version) : undefined;
						return result;
					},
				}),
		);
		const id = alpha.id(Thing, "t");
		shadow = shadowName(keyOf(id, "r1"));
		const beta = await lab.add({ name: "beta", service: "beta", region: "r1", types: [Thing] });
		await lab.run(alpha.write(thing("t")));
		expect(createdAt).toBeUndefined();
		await lab.run(
			lab.client(beta, alpha).establishReferences({
				route: { from: { uid: beta.info.uid, service: "beta" }, toUid: alpha.info.uid },
				targets: [{ key: lab.keyOf(alpha, id), rules: [OnDelete.BLOCK] }],
			}),
		);
		const [source] = (await alpha.shadow(id))?.sources ?? [];
		expect(source?.establishment).toBeGreaterThan(createdAt ?? expect.fail("it has a shadow"));
	});
});

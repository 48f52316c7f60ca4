import { create } from "@bufbuild/protobuf";
import { EstablishReferencesRequest_TargetSchema } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { DeployedSchema } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { decorateBackend } from "@plinth/storage";
import { describe, expect, it } from "vitest";
import { Thing, ThingSchema } from "../../testdata/types.ts";
import { Lab, make } from "../lab/lab.fixture.ts";
import { keyOf } from "../shadow/resource-key.ts";
import { deletedHeader } from "./dropped-deployments.ts";
import { establishSources } from "./establish-sources.ts";

describe("a deployment that is dropped", () => {
	it("establishes nothing any more, not even with a call that had begun before", async () => {
		const reached = Promise.withResolvers<void>();
		const released = Promise.withResolvers<void>();
		const lab = new Lab(1);
		const alpha = await lab.add(
			{ name: "alpha", service: "alpha", region: "r1", types: [Thing] },
			(backend) =>
				decorateBackend(backend, {
					async commit(mutations, options) {
						const isEstablishment = mutations.some(
							(each) => each.op === "assert" && each.id.name.startsWith("dropped-"),
						);
						if (isEstablishment) {
							reached.resolve();
							await released.promise;
						}
						return backend.commit(mutations, options);
					},
				}),
		);
		await lab.run(alpha.write(make(Thing, "a", create(ThingSchema))));
		const { context } = alpha.current.constraints;
		const from = create(DeployedSchema, { uid: "01DELETED", service: "beta", region: "r1" });
		const target = create(EstablishReferencesRequest_TargetSchema, {
			key: keyOf(alpha.id(Thing, "a"), "r1"),
		});
		const established = establishSources(context, from, [target], undefined).catch(
			(failure: unknown) => failure,
		);
		await lab.run(reached.promise);
		await lab.run(context.dropped.drop(from.uid));
		released.resolve();
		const failure = await lab.run(established);
		expect(failure).toMatchObject({ rawMessage: expect.stringContaining("01DELETED was deleted") });
		expect((failure as { metadata?: Headers }).metadata?.get(deletedHeader)).toBe("01DELETED");
		expect((await alpha.shadow(alpha.id(Thing, "a")))?.sources ?? []).toEqual([]);
	});
});

import { create } from "@bufbuild/protobuf";
import { DeployedSchema } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { decorateBackend, Exhausted } from "@plinth/storage";
import { describe, expect, it } from "vitest";
import { oneDeployment } from "../lab/things.fixture.ts";
import { readFollowers, recordFollower, recordsTypes } from "./followers.ts";

const v1 = "alpha.v1.Thing";
const v2 = "alpha.v2.Thing";

async function followers() {
	let isFull = false;
	const { lab, alpha } = await oneDeployment({}, (backend) =>
		decorateBackend(backend, {
			commit: async (mutations, options) => {
				if (isFull) {
					throw new Exhausted("the storage is full");
				}
				return backend.commit(mutations, options);
			},
		}),
	);
	const { context } = alpha.current.constraints;
	const from = create(DeployedSchema, { uid: "01BETA", service: "beta", region: "r1" });
	return {
		fill: () => {
			isFull = true;
		},
		follow: (schema: bigint, ...types: string[]) =>
			lab.run(recordFollower(context, from, { types, schema })),
		establish: async (schema: bigint, ...types: string[]) => {
			const mutation = await lab.run(recordsTypes(context, from, { types, schema }));
			await lab.run(alpha.backend.commit([mutation]));
		},
		version: async () => (await lab.run(readFollowers(context))).resource?.version,
		types: async () => {
			const { followers } = await lab.run(readFollowers(context));
			return followers.flatMap(({ types }) => types);
		},
	};
}

describe("the followers of a deployment", () => {
	it("reference what they have established, until they name all that they reference", async () => {
		const { follow, establish, types } = await followers();
		await establish(1n, v1);
		await establish(2n, v2);
		expect(await types()).toEqual([v1, v2]);
		await follow(2n, v2);
		expect(await types()).toEqual([v2]);
	});

	it("are not changed by what an earlier schema of them has sent", async () => {
		const { follow, establish, types } = await followers();
		await establish(2n, v1, v2);
		await follow(1n, v1);
		expect(await types()).toEqual([v1, v2]);
		await follow(3n, v2);
		await follow(2n, v1, v2);
		expect(await types()).toEqual([v2]);
		await establish(1n, v1);
		expect(await types()).toEqual([v1, v2]);
		await follow(2n, v1);
		expect(await types()).toEqual([v1, v2]);
	});

	it("are not changed by it after a later schema has named the same types again", async () => {
		const { follow, establish, types } = await followers();
		await follow(1n, v1);
		await follow(3n, v1);
		await follow(2n, v2);
		expect(await types()).toEqual([v1]);
		await establish(5n, v1);
		await follow(4n, v2);
		expect(await types()).toEqual([v1]);
		await follow(5n, v2);
		expect(await types()).toEqual([v2]);
	});

	it("are not changed by it after a later schema references nothing", async () => {
		const { follow, types } = await followers();
		await follow(1n, v1);
		await follow(3n);
		await follow(2n, v1);
		expect(await types()).toEqual([]);
		await follow(4n, v1);
		expect(await types()).toEqual([v1]);
	});

	it("are written once for each schema", async () => {
		const { follow, establish, version } = await followers();
		await follow(2n, v1);
		const before = await version();
		await follow(2n, v1);
		await follow(1n, v1);
		await establish(2n, v1);
		await establish(1n, v1);
		expect(await version()).toBe(before);
	});

	it("may watch a deployment with a full storage that has recorded their types", async () => {
		const { fill, follow, types } = await followers();
		await follow(1n, v1);
		fill();
		await follow(2n, v1);
		await expect(follow(2n, v1, v2)).rejects.toThrow(Exhausted);
		expect(await types()).toEqual([v1]);
	});

	it("reference nothing once they name no types", async () => {
		const { follow, types } = await followers();
		await follow(1n, v1);
		await follow(2n);
		expect(await types()).toEqual([]);
	});
});

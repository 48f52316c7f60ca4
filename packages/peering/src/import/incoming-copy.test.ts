import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { OriginSchema, type Resource, StatusSchema } from "@plinth/proto";
import { newUlid, TypeRegistry } from "@plinth/resource";
import { CopyCheck } from "@plinth/resource-service";
import { systemRuntime } from "@plinth/runtime";
import { describe, expect, it } from "vitest";
import { Good, good } from "../simulation/goods.fixture.ts";
import { incomingCopy, type RegionPlace } from "./incoming-copy.ts";

const ulid = () => newUlid(systemRuntime);
const [home, peer, own] = [ulid(), ulid(), ulid()];
const place = {
	kind: "peer",
	partition: "west",
	peering: "west",
	peerCluster: peer,
	ownCluster: own,
} as const;
const check = new CopyCheck(new TypeRegistry([Good]));

function sent(change: (resource: Resource) => void = () => {}): Resource {
	const resource = good("ale", "pale");
	resource.generation = ulid();
	resource.origin = create(OriginSchema, {
		...{ cluster: home, uid: ulid(), version: "7", incarnation: ulid() },
		...{ path: [home, peer], partition: "default", peering: "forged" },
	});
	change(resource);
	return resource;
}

const problemOf = (change: (resource: Resource) => void) => {
	const result = incomingCopy(Good, sent(change), place, check);
	return "problem" in result ? result.problem : undefined;
};

describe("what a peer sends", () => {
	it("is stored in the partition of the import, without what belongs to its home", () => {
		const resource = sent(({ metadata }) => {
			metadata.finalizers = "held";
			metadata.deletionTimestamp = new Date(0).toISOString();
			metadata.label = "x";
		});
		const elsewhere = good("other", "").id;
		const forged = { ...resource, version: "9", ...(elsewhere && { owner: elsewhere }) };
		const result = incomingCopy(Good, forged, place, check);
		expect(result).toMatchObject({
			copy: {
				id: { uid: "", name: "ale", tenancy: { partition: "west", namespace: "default" } },
				version: "",
				metadata: { label: "x" },
				origin: { peering: "west", version: "7", path: [home, peer] },
			},
		});
		expect("copy" in result && result.copy.owner).toBe(undefined);
		expect("copy" in result && Object.keys(result.copy.metadata)).toEqual(["label"]);
	});

	const malformed = "its origin is malformed";
	const origin = (change: Partial<NonNullable<Resource["origin"]>>) => (resource: Resource) => {
		Object.assign(resource.origin ?? {}, change);
	};
	it.each<[string, (resource: Resource) => void, string | RegExp]>([
		["without an origin", (resource) => delete resource.origin, malformed],
		["that another cluster has sent", origin({ path: [home, ulid()] }), malformed],
		["whose path has another home", origin({ path: [ulid(), peer] }), malformed],
		["with a version that is none", origin({ version: "1e9" }), malformed],
		["with a uid that is none", origin({ uid: "x" }), malformed],
		[
			"with a generation that is none",
			(resource) => Object.assign(resource, { generation: "" }),
			malformed,
		],
		[
			"that has passed this cluster",
			origin({ path: [home, own, peer] }),
			"it has passed this cluster before",
		],
		[
			"with a long path",
			origin({ path: Array.from({ length: 17 }, () => home) }),
			/more than 16 clusters/,
		],
		[
			"that is too large",
			(resource) => {
				const value = good("ale", "x".repeat(1_100_000)).data?.value ?? new Uint8Array();
				Object.assign(resource.data ?? {}, { value });
			},
			/^resource is too large/,
		],
		[
			"with malformed data",
			(resource) => Object.assign(resource.data ?? {}, { value: Uint8Array.of(0x0a, 9) }),
			"data is not a valid goods.v1.Good",
		],
		[
			"with data of another type",
			(resource) => Object.assign(resource.data ?? {}, { typeUrl: "x/y" }),
			/not a valid/,
		],
		[
			"with a key that metadata can't have",
			({ metadata }) => Object.assign(metadata, { "a b": "" }),
			/metadata/,
		],
		[
			"with too many statuses",
			({ status }) => {
				for (let at = 0; at < 33; at += 1) {
					status[`s${at}`] = create(StatusSchema);
				}
			},
			"status has 33 entries, more than 32",
		],
		[
			"with a status of a malformed key",
			({ status }) => Object.assign(status, { "a b": create(StatusSchema) }),
			/key/,
		],
	])("is left out %s", (_, change, problem) => {
		expect(problemOf(change)).toEqual(
			typeof problem === "string" ? problem : expect.stringMatching(problem),
		);
	});
});

describe("what another region sends", () => {
	const from: RegionPlace = {
		...{ kind: "region", partition: "default", region: "us-west2" },
		...{ deployment: ulid(), cluster: home, incarnation: ulid() },
	};
	const origin = {
		...{ cluster: home, incarnation: from.incarnation, uid: ulid(), version: "7" },
		...{ region: "us-west2", partition: "default" },
	};
	const received = (change: MessageInitShape<typeof OriginSchema> = {}) => {
		const resource = good("ale", "pale");
		resource.generation = ulid();
		resource.origin = Object.assign(create(OriginSchema, origin), change);
		return incomingCopy(Good, resource, from, check);
	};

	it("is stored in its own place, with the region in its name", () => {
		expect(received()).toMatchObject({
			copy: {
				id: {
					...{ uid: "", name: "ale", region: "us-west2" },
					tenancy: { partition: "default", namespace: "default" },
				},
				origin: { region: "us-west2", path: [], peering: "" },
			},
		});
	});

	it.each<[string, MessageInitShape<typeof OriginSchema>]>([
		["of another region", { region: "us-east1" }],
		["of no region", { region: "" }],
		["of another partition", { partition: "private" }],
		["of another cluster", { cluster: peer }],
		["of another incarnation", { incarnation: ulid() }],
		["that has passed a cluster", { path: [home] }],
		["with a version that is none", { version: "x" }],
		["with a uid that is none", { uid: "x" }],
	])("is left out if it is %s", (_, change) => {
		expect(received(change)).toEqual({ problem: "its origin is malformed" });
	});
});

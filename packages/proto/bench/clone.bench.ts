/**
 * What cloning a typical resource costs: the generated cloner, the reflective `clone` of the
 * library, and `structuredClone`, for resources as `create` makes them, as `fromBinary` makes them,
 * and for a mix of both with other fields set, where the engine meets many shapes of objects.
 */
import { clone, create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { ComparisonTable, nanosecondsPer, unlessQuick } from "@plinth/bench";
import { Condition_State, cloneResource, type Resource, ResourceSchema } from "../src/index.ts";

const WAYS: Readonly<Record<string, (resource: Resource) => Resource>> = {
	"generated cloner": cloneResource,
	"reflective clone": (resource) => clone(ResourceSchema, resource),
	structuredClone: (resource) => structuredClone(resource),
};

/** A resource with a status of two conditions, and 200 bytes of data. */
function typicalResource(): Resource {
	return create(ResourceSchema, {
		id: {
			uid: "01JB2X8C4T7Q9M5N3K6P0R1S2V",
			name: "the-resource",
			type: { group: "demo", groupVersion: "v2", kind: "Artist" },
			tenancy: { partition: "default", namespace: "default" },
		},
		version: "123456",
		generation: "01JB2X8C4T7Q9M5N3K6P0R1S2W",
		metadata: { source: "import" },
		status: {
			"demo-controller": {
				observedGeneration: "01JB2X8C4T7Q9M5N3K6P0R1S2W",
				conditions: [
					{ type: "Ready", state: Condition_State.TRUE, reason: "Reconciled" },
					{ type: "Stalled", state: Condition_State.FALSE, message: "all is well" },
				],
				updatedAt: { seconds: 1_700_000_000n, nanos: 5 },
			},
		},
		data: { typeUrl: "type.googleapis.com/demo.v2.Artist", value: new Uint8Array(200).fill(1) },
	});
}

const decode = (resource: Resource) =>
	fromBinary(ResourceSchema, toBinary(ResourceSchema, resource));

/** 16 resources of different shapes. */
function mixedResources(): Resource[] {
	return Array.from({ length: 16 }, (_, i) => {
		const resource = typicalResource();
		if (i & 1) resource.owner = typicalResource().id;
		if (i & 2) delete resource.data;
		if (i & 4) delete resource.id;
		return i & 8 ? decode(resource) : resource;
	});
}

/** Where every clone goes, so that the engine cannot do without making it. */
let latest: Resource | undefined;

const table = new ComparisonTable("Clones of a typical resource", "ns");

async function measure(name: string, resources: readonly Resource[]): Promise<void> {
	const count = unlessQuick(20_000, 100);
	const rounds = Object.entries(WAYS).map(([way, cloneOne]) => [
		way,
		() =>
			nanosecondsPer(count, () => {
				for (let i = 0; i < count; i++) {
					latest = cloneOne(resources[i % resources.length] ?? fail());
				}
			}),
	]);
	await table.measure(name, Object.fromEntries(rounds));
}

function fail(): never {
	throw new Error("no resource to clone");
}

await measure("created by `create`", [typicalResource()]);
await measure("decoded by `fromBinary`", [decode(typicalResource())]);
await measure("of 16 shapes", mixedResources());
table.print();
if (latest?.$typeName !== ResourceSchema.typeName) {
	throw new Error("nothing was cloned");
}

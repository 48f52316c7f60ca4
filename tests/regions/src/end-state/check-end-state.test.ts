import { describe, expect, it } from "vitest";
import { endStateProblems } from "./check-end-state.ts";
import type { EndState, ObservedShadow, StoredResource } from "./end-state.ts";

const [project, rack, device, key] = [
	"Project p (us-west2)",
	"Rack r (eu-north1)",
	"Device d (us-west2)",
	"AccessKey k (eu-north1)",
];

const nothing = {
	lifecycle: "LIFECYCLE_ACTIVE",
	outgoing: [],
	sources: [],
	ownees: [],
	owners: [],
	tasks: [],
};

/** A rack of a project, and a key that a device owns. */
const resources = {
	project: kept(project, "iam-us-west2"),
	rack: kept(rack, "devices-eu-north1", { references: { project } }),
	device: kept(device, "devices-us-west2"),
	key: kept(key, "iam-eu-north1", { owners: [`uid of ${device}`] }),
};
const shadows = {
	project: shadow(project, { sources: [{ deployment: "devices-eu-north1", tentative: false }] }),
	rack: shadow(rack, { outgoing: [{ target: project, targetUid: `uid of ${project}` }] }),
	device: shadow(device, { ownees: ["iam-eu-north1"] }),
	key: shadow(key, { owners: [`uid of ${device}`] }),
};

function kept(
	key: string,
	deployment: string,
	seen: Partial<StoredResource["seen"]> = {},
): StoredResource {
	const uid = `uid of ${key}`;
	return {
		key,
		deployment,
		seen: { uid, marked: false, note: "", references: {}, owners: [], ...seen },
	};
}

function shadow(key: string, seen: Partial<ObservedShadow>): ObservedShadow {
	return { key, uid: `uid of ${key}`, ...nothing, ...seen };
}

function check(changed: {
	readonly resources?: Partial<Record<keyof typeof resources, StoredResource | undefined>>;
	readonly shadows?: Partial<Record<keyof typeof shadows, ObservedShadow | undefined>>;
}): readonly string[] {
	const state: EndState = {
		resources: Object.values({ ...resources, ...changed.resources }).filter(
			(it) => it !== undefined,
		),
		shadows: Object.values({ ...shadows, ...changed.shadows }).filter((it) => it !== undefined),
	};
	return endStateProblems(state);
}

const planted: Readonly<Record<string, [Parameters<typeof check>[0], RegExp]>> = {
	"a dangling reference": [
		{ resources: { project: undefined }, shadows: { project: undefined } },
		/references Project p .* which does not exist/,
	],
	"a reference to an incarnation that is gone": [
		{
			shadows: { rack: shadow(rack, { outgoing: [{ target: project, targetUid: "another" }] }) },
		},
		/another incarnation/,
	],
	"a shadow that does not know what its resource references": [
		{ shadows: { rack: undefined } },
		/does not know Project p/,
	],
	"a shadow that knows what its resource does not reference": [
		{ resources: { rack: kept(rack, "devices-eu-north1") } },
		/it does not/,
	],
	"a lost blockade": [{ shadows: { project: undefined } }, /does not name devices-eu-north1/],
	"a tentative source": [
		{
			shadows: {
				project: shadow(project, {
					sources: [{ deployment: "devices-eu-north1", tentative: true }],
				}),
			},
		},
		/tentative/,
	],
	CHECKING: [
		{
			shadows: {
				device: shadow(device, { lifecycle: "LIFECYCLE_CHECKING", ownees: ["iam-eu-north1"] }),
			},
		},
		/still LIFECYCLE_CHECKING/,
	],
	DELETING: [
		{
			shadows: {
				device: shadow(device, { lifecycle: "LIFECYCLE_DELETING", ownees: ["iam-eu-north1"] }),
			},
		},
		/still LIFECYCLE_DELETING/,
	],
	"a task": [
		{ shadows: { key: shadow(key, { owners: [`uid of ${device}`], tasks: ["checkOwners"] }) } },
		/has tasks: checkOwners/,
	],
	"a deletion that is not finished": [
		{ resources: { device: kept(device, "devices-us-west2", { marked: true }) } },
		/still being deleted/,
	],
	"a shadow of what is gone": [
		{ resources: { rack: undefined } },
		/Rack r .* does not exist, and has a shadow/,
	],
	"an owner that is gone": [
		{ resources: { device: undefined }, shadows: { device: undefined } },
		/has the owner .* which does not exist/,
	],
	"an owner that is not known": [{ shadows: { key: shadow(key, {}) } }, /does not know its owner/],
	"an ownee that is not known": [
		{ shadows: { device: shadow(device, {}) } },
		/owns AccessKey k .* does not name iam-eu-north1/,
	],
};

describe("the check of the end state", () => {
	it("accepts a consistent state", () => {
		expect(check({})).toEqual([]);
	});

	it.each(Object.entries(planted))("finds %s", (_, [changed, problem]) => {
		const found = check(changed);
		expect(found).toHaveLength(1);
		expect(found[0]).toMatch(problem);
	});
});

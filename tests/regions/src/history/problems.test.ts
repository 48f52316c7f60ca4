import { describe, expect, it } from "vitest";
import { noProblems, type Problems, problemsOf } from "./problems.ts";
import { Script } from "./script.fixture.ts";

const [project, rack, device, other, key] = [
	"Project p (us-west2)",
	"Rack r (eu-north1)",
	"Device d (us-west2)",
	"Device e (eu-north1)",
	"AccessKey k (eu-north1)",
];
const blocked =
	"iam.Project default/default/p (us-west2) can't be deleted: it is referenced by devices.Rack default/default/r (eu-north1) of devices in eu-north1";

function check(build: (script: Script) => void): Problems {
	const script = new Script();
	build(script);
	return problemsOf(script.history, ["us-west2", "eu-north1"]);
}

const fine: Readonly<Record<string, (script: Script) => void>> = {
	"a deletion that a client requested, and a re-created resource of the same name": (script) => {
		script.writes(project);
		script.deletes(project);
		script.writes(project);
		script.finds(project);
	},
	"a deletion of unknown outcome that was done, and one that was not": (script) => {
		script.writes(project);
		script.mayDelete(project);
		script.finds(project);
		script.mayDelete(project);
		script.findsNothing(project);
	},
	"a write of unknown outcome that was done, and one that was not": (script) => {
		script.writes(device);
		script.mayWrite(device);
		script.finds(device);
		const { note } = script.mayWrite(device);
		script.finds(device, { note });
	},
	"a blocked deletion": (script) => {
		script.writes(project);
		script.writes(rack, { references: { project } });
		script.isKept(project, blocked);
		script.finds(project);
	},
	"a deletion of a target whose referrer is being deleted too": (script) => {
		script.writes(project);
		script.writes(rack, { references: { project } });
		script.deletes(rack, false);
		script.deletes(project);
		script.finds(rack, { marked: true });
		script.findsNothing(rack);
	},
	"a deletion that waits for a deployment": (script) => {
		script.writes(project);
		script.isKept(
			project,
			"iam.Project default/default/p (us-west2) can't be deleted: devices in eu-north1 may reference it and can't be queried (unavailable)",
		);
	},
	"a cascade, and all that follows": (script) => {
		script.writes(rack);
		const uid = script.writes(device, { references: { rack } });
		script.writes(other, { references: { standby: device } });
		script.writes(key, { owners: [uid] });
		script.deletes(rack, false);
		script.finds(rack, { marked: true });
		script.finds(device, { marked: true });
		script.finds(other, { references: {} });
		script.findsNothing(device);
		script.findsNothing(rack);
		script.findsNothing(key);
	},
	"a write of a reference whose target is being deleted": (script) => {
		script.writes(project);
		script.writes(device, { references: { lentTo: project } });
		script.deletes(project, false);
		script.finds(project, { marked: true });
		script.writes(device, { references: { lentTo: project } });
		script.finds(device, { references: {} });
		script.findsNothing(project);
	},
	"a write with a missing target": (script) => {
		script.writes(project);
		script.deletes(project);
		script.isRefused(
			rack,
			{ references: { project } },
			"project (iam.Project default/default/p (us-west2)): iam.Project default/default/p (us-west2) does not exist",
		);
	},
};

const planted: Readonly<Record<string, [keyof Problems, (script: Script) => void]>> = {
	"a deletion without a request": [
		"deletions",
		(script) => {
			script.writes(project);
			script.findsNothing(project);
		},
	],
	"a mark without a request": [
		"deletions",
		(script) => {
			script.writes(rack);
			script.finds(rack, { marked: true });
		},
	],
	"a deletion that was refused, and done": [
		"deletions",
		(script) => {
			script.writes(project);
			script.writes(rack, { references: { project } });
			script.isKept(project, blocked);
			script.findsNothing(project);
		},
	],
	"a deletion that was observed without effect, and takes effect later": [
		"deletions",
		(script) => {
			script.writes(project);
			script.mayDelete(project);
			script.finds(project);
			script.findsNothing(project);
		},
	],
	"a successful deletion that is reverted": [
		"deletions",
		(script) => {
			script.writes(project);
			script.deletes(project, false);
			script.finds(project);
		},
	],
	"a deletion of a blocked resource": [
		"deletions",
		(script) => {
			script.writes(project);
			script.writes(rack, { references: { project } });
			script.deletes(project);
			script.finds(rack);
		},
	],
	"a cascade from an existing resource": [
		"deletions",
		(script) => {
			script.writes(rack);
			script.writes(device, { references: { rack } });
			script.findsNothing(device);
			script.finds(rack);
		},
	],
	"a cascade from an incarnation that was deleted before": [
		"deletions",
		(script) => {
			script.writes(rack);
			script.deletes(rack);
			script.writes(rack);
			script.writes(device, { references: { rack } });
			script.findsNothing(device);
		},
	],
	"a cascade along a removed reference": [
		"deletions",
		(script) => {
			script.writes(rack);
			script.writes(device, { references: { rack } });
			script.writes(device);
			script.deletes(rack);
			script.findsNothing(device);
		},
	],
	"a cascade along an UNSET reference": [
		"deletions",
		(script) => {
			script.writes(project);
			script.writes(device, { references: { lentTo: project } });
			script.deletes(project);
			script.findsNothing(device);
		},
	],
	"a deletion of an ownee with a remaining owner": [
		"deletions",
		(script) => {
			const owners = [script.writes(device), script.writes(other)];
			script.writes(key, { owners });
			script.deletes(device);
			script.findsNothing(key);
		},
	],
	"a cleared field whose target exists": [
		"contents",
		(script) => {
			script.writes(project);
			script.writes(device, { references: { lentTo: project } });
			script.finds(device, { references: {} });
		},
	],
	"a cleared field after the deletion of an earlier incarnation": [
		"contents",
		(script) => {
			script.writes(project);
			script.deletes(project);
			script.writes(project);
			script.writes(device, { references: { lentTo: project } });
			script.finds(device, { references: {} });
		},
	],
	"a cleared BLOCK reference": [
		"contents",
		(script) => {
			script.writes(project);
			script.writes(rack, { references: { project } });
			script.mayDelete(project);
			script.finds(rack, { references: {} });
			script.findsNothing(project);
		},
	],
	"a reference that no client wrote": [
		"contents",
		(script) => {
			script.writes(project);
			script.writes(device);
			script.finds(device, { references: { lentTo: project } });
		},
	],
	"a lost write": [
		"contents",
		(script) => {
			script.writes(device);
			script.writes(device);
			script.finds(device, { note: "note-1" });
		},
	],
	"a write that was refused, and done": [
		"contents",
		(script) => {
			script.writes(rack);
			script.isRefused(
				rack,
				{ references: { project } },
				"project (iam.Project default/default/p (us-west2)): iam.Project default/default/p (us-west2) does not exist",
			);
			script.finds(rack, { note: "note-2", references: { project } });
		},
	],
	"a removed owner that exists": [
		"contents",
		(script) => {
			const owners = [script.writes(device), script.writes(other)];
			script.writes(key, { owners });
			script.finds(key, { owners: owners.slice(1) });
		},
	],
	"a removed last owner of an existing resource": [
		"contents",
		(script) => {
			script.writes(key, { owners: [script.writes(device)] });
			script.deletes(device);
			script.finds(key, { owners: [] });
		},
	],
	"a refusal without a reason": [
		"refusals",
		(script) => {
			script.writes(project);
			script.isKept(project, "something went wrong");
		},
	],
	"a refusal that names no blocker": [
		"refusals",
		(script) => {
			script.writes(project);
			script.isKept(
				project,
				"iam.Project default/default/p (us-west2) can't be deleted: it is referenced by resources of devices in us-west2",
			);
		},
	],
	"a refusal that names a wrong blocker": [
		"refusals",
		(script) => {
			script.writes(project);
			script.writes(rack, { references: { project } });
			script.writes(rack);
			script.isKept(project, blocked);
		},
	],
	"a refusal that names an unknown deployment": [
		"refusals",
		(script) => {
			script.writes(project);
			script.isKept(
				project,
				"iam.Project default/default/p (us-west2) can't be deleted: devices in nowhere may reference it and can't be queried (unavailable)",
			);
		},
	],
	"a write that is refused for an existing target": [
		"refusals",
		(script) => {
			script.writes(project);
			script.isRefused(
				rack,
				{ references: { project } },
				"project (iam.Project default/default/p (us-west2)): iam.Project default/default/p (us-west2) does not exist",
			);
			script.finds(project);
		},
	],
	"a write that is refused as if the resource were marked": [
		"refusals",
		(script) => {
			script.writes(rack);
			script.isRefused(
				rack,
				{},
				"a write that marks a resource for deletion can't change its metadata",
				"invalid_argument",
			);
			script.finds(rack);
		},
	],
};

describe("the checks of the history", () => {
	it.each(Object.entries(fine))("accept %s", (_, build) => {
		expect(check(build)).toEqual(noProblems);
	});

	it.each(Object.entries(planted))("find %s", (_, [where, build]) => {
		const { [where]: found, ...others } = check(build);
		expect(found).toHaveLength(1);
		expect(Object.values(others).flat()).toEqual([]);
	});
});

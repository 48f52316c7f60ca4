import { parseSync } from "oxc-parser";
import { describe, expect, it } from "vitest";
import { contentsOf, type TemporaryProject, temporaryProject } from "../project/project.fixture.ts";
import { addType } from "../type/add-type.ts";
import { addController, type ProjectCode, planController } from "./add-controller.ts";

async function addTypes(project: TemporaryProject) {
	const from = project.root;
	await addType({ from, name: "Region", scope: "cluster" });
	await addType({ from, name: "Zone", references: ["Project:block"], fields: ["size:uint32"] });
	await addType({ from, name: "Device", references: ["Zone:cascade,backup=Zone:unset"] });
}

let shared: ProjectCode | undefined;

/** The code of a project with the types Project, Region, Zone and Device. It is read once. */
async function code(): Promise<ProjectCode> {
	if (shared === undefined) {
		const project = await temporaryProject();
		await addTypes(project);
		shared = await contentsOf(project);
	}
	return shared;
}

/** The texts of a controller and of its test. */
async function texts(name: string, options: Partial<Parameters<typeof planController>[0]>) {
	const { files } = planController({ from: "", name, manages: "Zone", ...options }, await code());
	for (const { path, content } of files) {
		expect(parseSync(path, content).errors).toEqual([]);
	}
	const [controller, test] = files.map(({ content }) => content);
	return { controller: controller ?? "", test: test ?? "" };
}

describe("a new controller", () => {
	it("consists of its file, a test and an entry in the module", async () => {
		const project = await temporaryProject();
		const { created, changed } = await addController({
			from: project.root,
			name: "ProjectAuditor",
			manages: "Project",
		});
		expect(created.map(({ path }) => path)).toEqual([
			"src/controllers/project-auditor.ts",
			"src/controllers/project-auditor.test.ts",
		]);
		expect(changed).toEqual(["src/module.ts"]);
		expect(
			await project.read("src/module.ts"),
		).toBe(`import { defineModule } from "@plinth/plinth/server";
import { projectAuditor } from "./controllers/project-auditor.ts";
import { Project } from "./types/project.ts";

export default defineModule({
	name: "iot",
	types: [Project],
	controllers: [projectAuditor],
});
`);
		const test = await project.read("src/controllers/project-auditor.test.ts");
		expect(test).toContain('const project = { title: "Greenhouse" };');
	});

	it("follows a watched type by the reference of the managed one", async () => {
		const { controller, test } = await texts("ZonePlanner", { watches: ["Project"] });
		expect(controller).toContain(
			'const zonesByProject = referenceIndex("project", Zone, ({ data }) => projectOf(data));',
		);
		expect(controller).toContain(
			"watch(Project, { map: cacheList(zonesByProject), when: contentChanged })",
		);
		expect(test).toContain('await server.write(Project, "greenhouse", project);');
		expect(test).toContain('project: { name: "greenhouse" }');
	});

	it("follows a watched type by several references", async () => {
		const { controller } = await texts("DeviceChecker", { manages: "Device", watches: ["Zone"] });
		expect(controller).toContain(
			`[data.zone, data.backup].flatMap((each) =>
		each === undefined ? [] : [idOf(Zone, each.name, each.tenancy)],
	);`,
		);
	});

	it("follows a watched type that references the managed one", async () => {
		const { controller } = await texts("ZoneCounter", { watches: ["Device"] });
		expect(controller).toContain("watch(Device, { map: (_, { data }) => zonesOf(data)");
		expect(controller).toContain("ctx.cache.list(devicesByZone, id)");
	});

	it("reconciles everything when an unrelated type changes", async () => {
		const { controller } = await texts("ZoneMover", { watches: ["Region"] });
		expect(controller).toContain("watch(Region, { map: allZones, when: contentChanged })");
	});

	it("owns what it writes", async () => {
		const { controller, test } = await texts("RegionFiller", { manages: "Region", writes: "Zone" });
		expect(controller).toContain("watch(Zone, { map: ownerOfType(Region), when: contentChanged })");
		expect(controller).toContain("owner: region.resource.id,");
		expect(test).toContain('test("a zone that someone deletes comes back"');
	});
});

describe("a controller is refused", () => {
	it.each([
		[{ name: "zonePlanner", manages: "Zone" }, /it must be in PascalCase.*as in ZonePlanner/],
		[{ name: "Watch", manages: "Zone" }, /its file uses watch for something else/],
		[{ name: "Planner", manages: "Zonne" }, /no type Zonne in .*: did you mean Zone\?/],
		[
			{ name: "Planner", manages: "Zone", watches: ["Zone"] },
			/iot.v1.Zone is managed, and therefore/,
		],
		[
			{ name: "Planner", manages: "Zone", watches: ["Project,Project"] },
			/is named twice in --watches/,
		],
		[{ name: "Planner", manages: "Zone", writes: "Zone" }, /that is the managed type itself/],
		[
			{ name: "Planner", manages: "Zone", watches: ["Project"], writes: "Project" },
			/iot.v1.Project is written, and therefore watched already/,
		],
		[
			{ name: "Planner", manages: "Zone", writes: "Region" },
			/two zones of the same name would write the same region/,
		],
		[
			{ name: "Planner", manages: "tenancy.v1.Namespace" },
			/no type tenancy.v1.Namespace in the project/,
		],
	])("%o", async (options, message) => {
		const contents = await code();
		expect(() => planController({ from: "", ...options }, contents)).toThrow(message);
	});

	it("if its type has no definition", async () => {
		const project = await temporaryProject();
		await project.remove("src/types/project.ts");
		await expect(
			addController({ from: project.root, name: "Planner", manages: "Project" }),
		).rejects.toThrow(
			"no file below src exports the type iot.v1.Project: add one with export const Project = defineType(ProjectSchema)",
		);
	});
});

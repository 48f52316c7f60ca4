import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { contentsOf, temporaryProject } from "../project/project.fixture.ts";
import { addType, type ProjectContents, planType } from "./add-type.ts";

describe("a new type", () => {
	it("consists of a proto, a definition, a resource and an entry in the module", async () => {
		const project = await temporaryProject();
		const { created, changed } = await addType({
			from: project.root,
			name: "GrowZone",
			references: ["Project:block", "backup=GrowZone:unset"],
			fields: ["capacity:uint32,opened:timestamp"],
		});
		expect(created.map(({ path }) => path)).toEqual([
			"proto/iot/v1/grow_zone.proto",
			"src/types/grow-zone.ts",
			"resources/grow-zone.yaml",
		]);
		expect(changed).toEqual(["src/module.ts"]);
		expect(await project.read("proto/iot/v1/grow_zone.proto")).toBe(`syntax = "proto3";

package iot.v1;

import "google/protobuf/timestamp.proto";
import "plinth/resource/v1/annotations.proto";
import "plinth/resource/v1/resource.proto";
import "plinth/schema/v1/annotations.proto";
import "plinth/type/v1/table.proto";

// GrowZone describes a grow zone, in a namespace.
message GrowZone {
  option (plinth.resource.v1.spec) = {scope: SCOPE_NAMESPACE};
  option (plinth.type.v1.table) = {
    columns: [
      {path: "capacity"},
      {path: "opened"},
      {
        heading: "PROJECT"
        path: "project.name"
      },
      {
        heading: "BACKUP"
        path: "backup.name"
      }
    ]
  };

  uint32 capacity = 1;
  google.protobuf.Timestamp opened = 2;
  // A project that grow zones reference can't be deleted.
  plinth.resource.v1.Reference project = 3 [(plinth.schema.v1.reference) = {
    type: "iot.v1.Project"
    on_delete: BLOCK
  }];
  // Cleared when that grow zone is deleted.
  plinth.resource.v1.Reference backup = 4 [(plinth.schema.v1.reference) = {
    type: "iot.v1.GrowZone"
    on_delete: UNSET
  }];
}
`);
		expect(await project.read("src/types/grow-zone.ts")).toContain(
			'import { GrowZoneSchema } from "../gen/iot/v1/grow_zone_pb.ts";',
		);
		expect(
			await project.read("resources/grow-zone.yaml"),
		).toBe(`# npx plinth apply -f resources/grow-zone.yaml
type: iot.v1.GrowZone
name: example
data:
  capacity: 1
  opened: 2026-01-01T00:00:00Z
  project:
    name: greenhouse
`);
		expect(await project.read("src/module.ts")).toContain("\ttypes: [Project, GrowZone],\n");
		expect(await project.buf("lint", "proto")).toBe("");
		expect(await project.buf("format", "--diff", "--exit-code", "proto")).toBe("");
	});

	it("is added from any folder of the project", async () => {
		const project = await temporaryProject();
		await addType({ from: join(project.root, "src/types"), name: "Zone" });
		expect(await project.read("proto/iot/v1/zone.proto")).toContain("  string description = 1;\n");
	});

	it("gets the file options of its package", async () => {
		const project = await temporaryProject();
		const proto = await project.read("proto/iot/v1/project.proto");
		const options = 'option go_package = "acme.org/iot";\noption java_multiple_files = true;\n';
		await project.write(
			"proto/iot/v1/project.proto",
			proto.replace("// Project", `${options}\n$&`),
		);
		await addType({ from: project.root, name: "Zone" });
		expect(await project.read("proto/iot/v1/zone.proto")).toContain(options);
		expect(await project.buf("lint", "proto")).toBe("");
		expect(await project.buf("format", "--diff", "--exit-code", "proto")).toBe("");
	});

	it("is the first one of a project without protos", async () => {
		const project = await temporaryProject({ "proto/iot/v1/project.proto": "" });
		await project.remove("proto");
		await addType({ from: project.root, name: "Zone", scope: "global" });
		expect(await project.read("proto/acme_iot/v1/zone.proto")).toContain("SCOPE_CLUSTER");
	});

	it("is not written by a dry run", async () => {
		const project = await temporaryProject();
		const before = await project.files();
		const { created, changed } = await addType({ from: project.root, name: "Zone", dryRun: true });
		expect(created).toHaveLength(3);
		expect(changed).toEqual(["src/module.ts"]);
		expect(await project.files()).toEqual(before);
		expect(await project.read("src/module.ts")).not.toContain("Zone");
	});

	it("leaves a module of another form to the user", async () => {
		const project = await temporaryProject({ "src/module.ts": "export default {};\n" });
		const { changed, lines } = await addType({ from: project.root, name: "Zone" });
		expect(changed).toEqual([]);
		expect(lines).toEqual(['import { Zone } from "./types/zone.ts";', "types: [..., Zone]"]);
		expect(await project.files()).toContain("src/types/zone.ts");
		expect(await project.files()).not.toContain("src/module.ts.new");
	});

	it("says which targets its resource names before they exist", async () => {
		const project = await temporaryProject({ "resources/project.yaml": "- no\n- resource\n" });
		const { next } = await addType({ from: project.root, name: "Zone", references: ["Project"] });
		expect(next).toContain("create the iot.v1.Project that resources/zone.yaml names: example");
	});

	it("is added once by two callers at once", async () => {
		const project = await temporaryProject();
		const calls = [1, 2, 3].map(() => addType({ from: project.root, name: "Zone" }));
		const outcomes = await Promise.allSettled(calls);
		expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
		expect((await project.read("src/module.ts")).match(/\bZone\b/g)).toHaveLength(2);
		expect(await project.files()).not.toContain("src/module.ts.new");
	});
});

describe("a type is refused", () => {
	let contents: ProjectContents;

	it.each([
		[
			{ name: "grow-zone" },
			`"grow-zone" can't be the name of a type: it must be in PascalCase, of at least two letters or digits, as in GrowZone`,
		],
		[{ name: "ZoneSchema" }, /names that end with Schema are those of generated descriptors/],
		[{ name: "Partial" }, /generated TypeScript uses that name/],
		[{ name: "Project" }, "proto/iot/v1/project.proto defines iot.v1.Project already"],
		[{ name: "Plan" }, "proto/iot/v1/project.proto defines iot.v1.Plan already"],
		[
			{ name: "Project", package: "acme.iot.v1" },
			"proto/iot/v1/project.proto defines the type iot.v1.Project already",
		],
		[{ name: "Zone", scope: "namspace" }, '"namspace" is not a scope: did you mean namespace?'],
		[
			{ name: "Zone", package: "iot" },
			`"iot" can't be the package of a type: its last part must be a version, as in iot.v1 or iot.v1beta1`,
		],
		[{ name: "Zone", package: "acme.plinth.v1" }, /the part plinth would hide the package plinth/],
		[
			{ name: "Zone", references: ["Projct:block"] },
			"no type Projct in the project's protos: did you mean Project?",
		],
		[
			{ name: "Zone", references: ["iam.v1.User"] },
			/for a type of another service, name the group iam in the imports of the option/,
		],
		[
			{ name: "Zone", references: ["Project:blok"] },
			'"blok" is no rule for the deletion of the referenced Project: did you mean block?',
		],
		[{ name: "Zone", references: [""] }, /"" is not a reference: it must be Type:rule/],
		[
			{ name: "Zone", references: ["Project:block", "Project:unset"] },
			/two fields would be named project: give a reference another name/,
		],
		[
			{ name: "Zone", fields: ["size:uint33"] },
			'the field size can\'t have the type "uint33": did you mean uint32?',
		],
		[
			{ name: "Zone", fields: ["sizeGib:uint32"] },
			/it must be in lower snake_case, as in size_gib/,
		],
		[{ name: "Zone", fields: ["size"] }, /"size" is not a field: it must be name:type/],
	])("%o", async (options, message) => {
		contents ??= await contentsOf(await temporaryProject());
		const { project } = contents;
		expect(() => planType({ from: project.root, ...options }, contents)).toThrow(message);
	});

	it("if one of its files exists", async () => {
		const project = await temporaryProject({ "src/types/zone.ts": "", "resources/zone.yaml": "" });
		await expect(addType({ from: project.root, name: "Zone" })).rejects.toThrow(
			"src/types/zone.ts and resources/zone.yaml exist already: nothing was written",
		);
		expect(await project.read("src/module.ts")).not.toContain("Zone");
	});

	it("outside of a project", async () => {
		const project = await temporaryProject({ "package.json": "{}" });
		await expect(addType({ from: project.root, name: "Zone" })).rejects.toThrow(
			`${project.root} is not in a Plinth project: no package.json there or above depends on @plinth/plinth (npm create plinth@latest makes a project)`,
		);
	});

	it("if the protos of the project do not compile", async () => {
		const project = await temporaryProject({ "proto/iot/v1/site.proto": "message {}" });
		await expect(addType({ from: project.root, name: "Zone" })).rejects.toThrow(
			/do not compile; fix them first:\nproto\/iot\/v1\/site.proto:1:1:/,
		);
	});

	it("if the project has several packages, and none is given", async () => {
		const project = await temporaryProject();
		await addType({ from: project.root, name: "Zone", package: "iam.v1" });
		await expect(addType({ from: project.root, name: "Device" })).rejects.toThrow(
			"the project has types in several packages: give one with --package, such as",
		);
	});
});

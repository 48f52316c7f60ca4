import { execFile } from "node:child_process";
import { chmod, mkdir, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { temporaryFolder } from "@plinth/test-support";
import { readDefinedTypes } from "./defined-types.ts";
import { readExamples } from "./example-resources.ts";
import { findProject } from "./find-project.ts";
import { typesOf } from "./project-types.ts";
import { readProtos } from "./read-protos.ts";

const repository = fileURLToPath(new URL("../../../..", import.meta.url));

const run = promisify(execFile);

const bufYaml = `version: v2
modules:
  - path: proto
  - path: node_modules/@plinth/plinth/proto
lint:
  use:
    - STANDARD
`;

const projectProto = `syntax = "proto3";

package iot.v1;

import "plinth/resource/v1/annotations.proto";

// Project is what devices are for.
message Project {
  option (plinth.resource.v1.spec) = {scope: SCOPE_NAMESPACE};

  string title = 1;
}

// Plan is part of something else.
message Plan {
  string text = 1;
}
`;

const moduleText = `import { defineModule } from "@plinth/plinth/server";
import { Project } from "./types/project.ts";

export default defineModule({
	name: "iot",
	types: [Project],
});
`;

/** The files of a small project with the type `iot.v1.Project`. */
const smallProject = {
	"package.json": JSON.stringify({
		name: "@acme/iot",
		dependencies: { "@plinth/plinth": "0.1.0" },
	}),
	"buf.yaml": bufYaml,
	"proto/iot/v1/project.proto": projectProto,
	"src/module.ts": moduleText,
	"src/types/project.ts": `import { defineType } from "@plinth/plinth/types";
import { ProjectSchema } from "../gen/iot/v1/project_pb.ts";

export const Project = defineType(ProjectSchema);
`,
	"resources/project.yaml": "type: iot.v1.Project\nname: greenhouse\ndata:\n  title: Greenhouse\n",
};

/** A project in a temporary folder. */
export class TemporaryProject {
	readonly root: string;

	constructor(root: string) {
		this.root = root;
	}

	read(path: string): Promise<string> {
		return readFile(join(this.root, path), "utf8");
	}

	async write(path: string, content: string): Promise<void> {
		await mkdir(dirname(join(this.root, path)), { recursive: true });
		await writeFile(join(this.root, path), content);
	}

	async remove(path: string): Promise<void> {
		await rm(join(this.root, path), { recursive: true });
	}

	/** The paths of all files, without the installed packages. */
	async files(): Promise<readonly string[]> {
		const entries = await readdir(this.root, { recursive: true, withFileTypes: true });
		return entries
			.filter((each) => each.isFile())
			.map((each) => join(each.parentPath, each.name).slice(this.root.length + 1))
			.filter((path) => !path.startsWith("node_modules"))
			.sort();
	}

	/** Runs buf, and returns what it complains about; empty if nothing. */
	async buf(...args: readonly string[]): Promise<string> {
		const buf = join(this.root, "node_modules/.bin/buf");
		return await run(buf, [...args], { cwd: this.root }).then(
			() => "",
			(error: { readonly stdout: string; readonly stderr: string }) => error.stdout + error.stderr,
		);
	}
}

/** What a project contains. */
export async function contentsOf({ root }: TemporaryProject) {
	return {
		project: await findProject(root),
		known: typesOf(await readProtos(root)),
		defined: await readDefinedTypes(root),
		examples: await readExamples(root),
	};
}

/** A project with the type `iot.v1.Project`, with files added or replaced. */
export async function temporaryProject(
	files: Readonly<Record<string, string>> = {},
): Promise<TemporaryProject> {
	const project = new TemporaryProject(await temporaryFolder());
	for (const [path, content] of Object.entries({ ...smallProject, ...files })) {
		await project.write(path, content);
	}
	await project.write(
		"node_modules/.bin/buf",
		`#!/bin/sh\nexec "${repository}/node_modules/.bin/buf" "$@"\n`,
	);
	await chmod(join(project.root, "node_modules/.bin/buf"), 0o755);
	const installed = join(project.root, "node_modules/@plinth/plinth");
	await mkdir(installed, { recursive: true });
	await symlink(join(repository, "packages/proto/proto"), join(installed, "proto"));
	return project;
}

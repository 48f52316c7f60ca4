import { checkName } from "../names/check-name.ts";
import { suggestion } from "../names/suggestion.ts";
import { kebabCase, snakeCase } from "../names/words.ts";
import {
	type ExampleResource,
	exampleName,
	readExamples,
	resourceFolder,
} from "../project/example-resources.ts";
import { findProject, type Project } from "../project/find-project.ts";
import { type Generated, generate, type Plan } from "../project/generate.ts";
import { type ProjectTypes, type Scope, scopes, typesOf } from "../project/project-types.ts";
import { protoFolder, readProtos } from "../project/read-protos.ts";
import { ScaffoldError } from "../scaffold-error.ts";
import { parseFields } from "./parse-fields.ts";
import { protoFile, type TypeDefinition } from "./proto-file.ts";
import { resourceFile, targetsOf } from "./resource-file.ts";
import { typeFile } from "./type-file.ts";
import { packageOf } from "./type-package.ts";

/** What to generate. */
export interface TypeOptions {
	/** A folder of the project. */
	readonly from: string;
	/** The kind, in PascalCase. */
	readonly name: string;
	/** `namespace` by default. */
	readonly scope?: string;
	/** Such as `Project:block`, `backup=Zone:unset`, or several with commas. */
	readonly references?: readonly string[];
	/** Such as `capacity:uint32`, or several with commas. */
	readonly fields?: readonly string[];
	/** As in `iot.v1`; by default the package of the project's types. */
	readonly package?: string;
	/** Whether only to return what would be written. */
	readonly dryRun?: boolean;
}

/**
 * Adds a resource type to a project: a proto, a definition, a resource to try it with, and an entry in `src/module.ts`.
 *
 * @throws ScaffoldError if it can't; then nothing was written.
 */
export async function addType(options: TypeOptions): Promise<Generated> {
	checkName("type", options.name);
	const project = await findProject(options.from);
	const known = typesOf(await readProtos(project.root));
	const examples = await readExamples(project.root);
	return await generate(project, planType(options, { project, known, examples }));
}

/** What a project contains. */
export interface ProjectContents {
	readonly project: Project;
	readonly known: ProjectTypes;
	readonly examples: readonly ExampleResource[];
}

/**
 * Decides what to write for a new type.
 *
 * @throws ScaffoldError if the options do not fit together, or do not fit the project.
 */
export function planType(options: TypeOptions, contents: ProjectContents): Plan {
	const { name, fields = [], references = [], dryRun = false } = options;
	const { project, known, examples } = contents;
	checkName("type", name);
	const scope = scopeOf(options.scope ?? "namespace");
	const packageName = packageOf(options.package, known, project);
	const key = [...packageName.split(".").slice(-2), name].join(".");
	const parsed = parseFields(fields, references, known, { key, kind: name });
	const type: TypeDefinition = {
		...{ kind: name, package: packageName, scope },
		fields: parsed.length > 0 ? parsed : [{ kind: "plain", name: "description", type: "string" }],
	};
	refuseTaken(type, key, known);
	const targets = targetsOf(key, type.fields, examples);
	const sibling = known.files.find(({ proto }) => proto.package === packageName);
	const proto = `${protoFolder}/${packageName.replaceAll(".", "/")}/${snakeCase(name)}.proto`;
	const example = `${resourceFolder}/${kebabCase(name)}.yaml`;
	const { run, exec } = project.commands;
	const tryIt = `${exec} plinth apply -f ${example}`;
	return {
		files: [
			{ path: proto, content: protoFile(type, sibling) },
			{ path: `src/types/${kebabCase(name)}.ts`, content: typeFile(name, packageName) },
			{ path: example, content: resourceFile(key, type.fields, targets, tryIt) },
		],
		addition: { list: "types", name, from: `./types/${kebabCase(name)}` },
		dryRun,
		next: [
			`give ${name} its fields: ${proto}`,
			`${run} generate (${run} dev does it by itself)`,
			...targets.missing.map((each) => `create the ${each} that ${example} names: ${exampleName}`),
			tryIt,
		],
	};
}

function scopeOf(text: string): Scope {
	// Types without tenancy are global: the name that comes to mind first.
	const scope = scopes.find((each) => each === (text === "global" ? "cluster" : text));
	if (scope === undefined) {
		throw new ScaffoldError(`"${text}" is not a scope${suggestion(text, [...scopes, "global"])}`);
	}
	return scope;
}

/** Refuses a type whose name is taken in the project, in its package or as a resource type. */
function refuseTaken(type: TypeDefinition, key: string, { types, files }: ProjectTypes): void {
	const message = `${type.package}.${type.kind}`;
	const taken = files
		.filter(({ proto }) => proto.package === type.package)
		.find(({ messages, enums, services }) =>
			[...messages, ...enums, ...services].some(({ typeName }) => typeName === message),
		);
	const same = types.find((each) => each.key === key)?.message.file;
	const file = taken ?? same;
	if (file !== undefined) {
		const name = taken === undefined ? `the type ${key}` : message;
		throw new ScaffoldError(`${protoFolder}/${file.proto.name} defines ${name} already`);
	}
}

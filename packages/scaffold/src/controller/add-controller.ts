import { checkName } from "../names/check-name.ts";
import { camelCase, kebabCase, plural, spoken } from "../names/words.ts";
import { type DefinedType, definitionOf, readDefinedTypes } from "../project/defined-types.ts";
import { type ExampleResource, exampleName, readExamples } from "../project/example-resources.ts";
import { findProject, type Project } from "../project/find-project.ts";
import { type Generated, generate, type Plan } from "../project/generate.ts";
import {
	type KnownType,
	ownType,
	type ProjectTypes,
	scopes,
	typesOf,
} from "../project/project-types.ts";
import { readProtos } from "../project/read-protos.ts";
import { ScaffoldError } from "../scaffold-error.ts";
import { controllerFile, isUsedByControllers } from "./controller-file.ts";
import type { ControllerDefinition, UsedType } from "./controller-parts.ts";
import { linkOf } from "./links.ts";
import { testFile } from "./test-file.ts";

/** What to generate. */
export interface ControllerOptions {
	/** A folder of the project. */
	readonly from: string;
	/** The name, in PascalCase. */
	readonly name: string;
	/** The type whose resources it reconciles. */
	readonly manages: string;
	/** Further types that it depends on; each text may list several with commas. */
	readonly watches?: readonly string[];
	/** The type of the resources that it writes: one for each managed resource. */
	readonly writes?: string;
	/** Whether only to return what would be written. */
	readonly dryRun?: boolean;
}

/**
 * Adds a controller to a project: its file, a test that passes as it stands, and an entry in `src/module.ts`.
 *
 * @throws ScaffoldError if it can't; then nothing was written.
 */
export async function addController(options: ControllerOptions): Promise<Generated> {
	checkName("controller", options.name);
	const project = await findProject(options.from);
	const known = typesOf(await readProtos(project.root));
	const defined = await readDefinedTypes(project.root);
	const examples = await readExamples(project.root);
	return await generate(project, planController(options, { project, known, defined, examples }));
}

/** What a project contains. */
export interface ProjectCode {
	readonly project: Project;
	readonly known: ProjectTypes;
	readonly defined: readonly DefinedType[];
	readonly examples: readonly ExampleResource[];
}

/**
 * Decides what to write for a new controller.
 *
 * @throws ScaffoldError if the options do not fit together, or do not fit the project.
 */
export function planController(options: ControllerOptions, contents: ProjectCode): Plan {
	const { name, dryRun = false } = options;
	const { project, known, defined, examples } = contents;
	checkName("controller", name);
	const variable = camelCase(name);
	if (isUsedByControllers(variable)) {
		throw new ScaffoldError(
			`"${name}" can't be the name of a controller: its file uses ${variable} for something else`,
		);
	}
	const managed = ownType(options.manages, known);
	const watched = (options.watches ?? [])
		.flatMap((text) => text.split(","))
		.map((each) => ownType(each.trim(), known));
	const written = options.writes === undefined ? undefined : ownType(options.writes, known);
	checkTypes(managed, watched, written);
	const used = (type: KnownType): UsedType => ({
		type,
		definition: definitionOf(type, defined),
		example: exampleOf(type, examples),
	});
	const controller: ControllerDefinition = {
		name,
		managed: used(managed),
		watched: watched.map((type) => ({ ...used(type), link: linkOf(managed, type) })),
		written: written && used(written),
	};
	const file = `src/controllers/${kebabCase(name)}`;
	return {
		files: [
			{ path: `${file}.ts`, content: controllerFile(controller) },
			{ path: `${file}.test.ts`, content: testFile(controller) },
		],
		addition: { list: "controllers", name: variable, from: `./controllers/${kebabCase(name)}` },
		dryRun,
		next: [
			...rulesToSatisfy(controller, examples, `${file}.test.ts`),
			project.commands.test,
			`write down what should be true of ${plural(spoken(managed.kind))}: ${file}.ts`,
			`${project.commands.run} dev`,
		],
	};
}

/** Refuses types that one controller can't combine. */
function checkTypes(
	managed: KnownType,
	watched: readonly KnownType[],
	written: KnownType | undefined,
): void {
	const families = new Set([managed.family]);
	for (const { family, key } of watched) {
		if (families.has(family)) {
			throw new ScaffoldError(
				family === managed.family
					? `${key} is managed, and therefore watched already: leave it out of --watches`
					: `${key} is named twice in --watches`,
			);
		}
		families.add(family);
	}
	if (written === undefined) {
		return;
	}
	if (families.has(written.family)) {
		throw new ScaffoldError(
			written.family === managed.family
				? `${written.key} can't be written for each ${managed.key}: that is the managed type itself`
				: `${written.key} is written, and therefore watched already: leave it out of --watches`,
		);
	}
	if (scopes.indexOf(written.scope) < scopes.indexOf(managed.scope)) {
		throw new ScaffoldError(
			`${written.key} has the scope ${written.scope}, and ${managed.key} the narrower scope ${managed.scope}: two ${plural(spoken(managed.kind))} of the same name would write the same ${spoken(written.kind)}`,
		);
	}
}

function exampleOf({ key }: KnownType, examples: readonly ExampleResource[]): UsedType["example"] {
	const found = examples.find(({ type }) => type === key);
	return { name: found?.name ?? exampleName, data: found?.data ?? {} };
}

/** The steps for types with validation rules of which the project's files have no resource to copy. */
function rulesToSatisfy(
	{ managed, watched, written }: ControllerDefinition,
	examples: readonly ExampleResource[],
	file: string,
): readonly string[] {
	const used = [managed, ...watched, ...(written === undefined ? [] : [written])];
	const open = used.filter(
		({ type }) => type.hasRules && !examples.some((each) => each.type === type.key),
	);
	return open.map(
		({ type }) => `give the ${type.kind} in ${file} data that satisfies the type's rules`,
	);
}

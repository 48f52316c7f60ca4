import type { JsonObject } from "@bufbuild/protobuf";
import { Identifiers } from "../names/identifiers.ts";
import { Imports } from "../names/imports.ts";
import { camelCase, kebabCase, plural, spoken, withArticle } from "../names/words.ts";
import {
	type ControllerDefinition,
	entries,
	generatedPath,
	importPath,
	type UsedType,
	type WatchedType,
} from "./controller-parts.ts";
import { indexName, targetIds } from "./links.ts";
import { initLiteral } from "./literal.ts";

/** Identifiers that the text of a controller uses for something else. */
const used = [
	...["cacheList", "contentChanged", "create", "defineController", "idOf", "ownerOfType"],
	...["referenceIndex", "referencesIndex", "watch", "Condition_State", "Object"],
	...["id", "ctx", "data", "each", "message", "reason", "report", "state", "cache", "resource"],
];

/** Whether the text of every controller uses the identifier for something else. */
export function isUsedByControllers(identifier: string): boolean {
	return new Identifiers(used).has(identifier);
}

/** The parts of the text that one watched type needs. */
interface WatchedText {
	/** Statements before the controller. */
	readonly before: string;
	/** The name of the index, if there is one. */
	readonly index: string | undefined;
	/** The entry of `watches`. */
	readonly watch: string;
	/** Statements of the reconciler. */
	readonly reconcile: string;
	/** What the report counts, as a part of a template; empty if nothing. */
	readonly count: string;
}

/** The names and imports of one file. */
interface File {
	readonly names: Identifiers;
	readonly imports: Imports;
	/** The identifiers of the managed type, and of one managed resource. */
	readonly managed: { readonly type: string; readonly resource: string };
	/** The names of the imported types of messages, by the full name of the type. */
	readonly data: Map<string, string>;
}

/** The TypeScript file of a controller. */
export function controllerFile({ name, managed, watched, written }: ControllerDefinition): string {
	const names = new Identifiers([...used, camelCase(name)]);
	const imports = new Imports();
	const managedType = importType(managed, names, imports);
	const file: File = {
		...{ names, imports, data: new Map() },
		managed: { type: managedType, resource: names.take(camelCase(managed.type.kind)) },
	};
	imports.add(entries.controllers, "contentChanged");
	imports.add(entries.controllers, "defineController");
	imports.add(entries.types, "Condition_State");
	const texts = watched.map((each) => watchedText(each, managed, file));
	const indexes = texts.flatMap(({ index }) => index ?? []);
	const ownership = written && writtenText(written, managed, file);
	const watches = [...texts.map(({ watch }) => watch), ...(ownership ? [ownership.watch] : [])];
	const { resource } = file.managed;
	const message = texts.flatMap(({ count }) => (count === "" ? [] : [count])).join(", ");
	return `${imports}
${texts.map(({ before }) => before).join("")}/** Brings ${plural(spoken(managed.type.kind))} to their desired state, and reports on them in the condition Ready. */
export const ${camelCase(name)} = defineController({
	name: "${kebabCase(name)}",
	manages: ${file.managed.type},
	when: contentChanged,
${indexes.length === 0 ? "" : `\tindexes: [${indexes.join(", ")}],\n`}${watches.length === 0 ? "" : `\twatches: [\n${watches.map((each) => `\t\t${each},\n`).join("")}\t],\n`}	async reconcile(ctx, { id }) {
		const ${resource} = ctx.cache.get(${file.managed.type}, id);
		if (${resource}?.resource.id === undefined) {
			return; // It was deleted${written === undefined ? "" : ", and what it owns with it"}.
		}
		const report = (state: Condition_State, reason: string, message = "") =>
			ctx.writeStatusIfChanged(${resource}.resource, {
				conditions: [{ type: "Ready", state, reason, message }],
			});
${texts.map(({ reconcile }) => reconcile).join("")}${ownership?.reconcile ?? "\t\t// Compare what is with what should be, and change it.\n"}		await report(Condition_State.TRUE, "Reconciled"${message === "" ? "" : `, \`${message}\``});
	},
});
`;
}

/** Imports a type's definition, and returns its name in the file. */
function importType({ definition }: UsedType, names: Identifiers, imports: Imports): string {
	const local = names.take(definition.name);
	imports.add(importPath(definition), definition.name, local);
	return local;
}

/** Imports the type of a type's messages, and returns its name in the file. */
function importData({ type }: UsedType, { names, imports, data }: File): string {
	const local = data.get(type.key) ?? names.take(`${type.kind}Data`);
	data.set(type.key, local);
	imports.addType(generatedPath(type), type.message.name, local);
	return local;
}

function watchedText(watched: WatchedType, managed: UsedType, file: File): WatchedText {
	file.imports.add(entries.controllers, "watch");
	switch (watched.link.kind) {
		case "one":
			return oneText(watched, managed, file);
		case "many":
			return manyText(watched, managed, file);
		case "back":
			return backText(watched, managed, file);
		case "none":
			return unrelatedText(watched, managed, file);
	}
}

function oneText(watched: WatchedType, managed: UsedType, file: File): WatchedText {
	const { names, imports } = file;
	const { kind } = watched.type;
	imports.add(entries.controllers, "cacheList");
	imports.add(entries.controllers, "referenceIndex");
	imports.add(entries.types, "idOf");
	const type = importType(watched, names, imports);
	const data = importData(managed, file);
	const target = names.take(`${camelCase(kind)}Of`);
	const index = names.take(`${plural(camelCase(managed.type.kind))}By${kind}`);
	const id = names.take(`${camelCase(kind)}Id`);
	const resource = names.take(camelCase(kind));
	const field = watched.link.fields[0]?.field;
	const value = `data.${field?.localName}`;
	return {
		before: `/** The ${spoken(kind)} of ${withArticle(spoken(managed.type.kind))}, if it names one. */
const ${target} = (data: ${data}) =>
	${value} && idOf(${type}, ${value}.name, ${value}.tenancy);

const ${index} = referenceIndex("${indexName(watched.link)}", ${file.managed.type}, ({ data }) => ${target}(data));

`,
		index,
		watch: `watch(${type}, { map: cacheList(${index}), when: contentChanged })`,
		reconcile: `		const ${id} = ${target}(${file.managed.resource}.data);
		const ${resource} = ${id} && ctx.cache.get(${type}, ${id});
		if (${resource} === undefined) {
			await report(Condition_State.FALSE, "No${kind}", "the ${spoken(kind)} does not exist");
			return;
		}
`,
		count: "",
	};
}

function manyText(watched: WatchedType, managed: UsedType, file: File): WatchedText {
	const { names, imports } = file;
	const { kind } = watched.type;
	imports.add(entries.controllers, "cacheList");
	imports.add(entries.controllers, "referencesIndex");
	imports.add(entries.types, "idOf");
	const type = importType(watched, names, imports);
	const data = importData(managed, file);
	const targets = names.take(`${plural(camelCase(kind))}Of`);
	const index = names.take(`${plural(camelCase(managed.type.kind))}By${kind}`);
	const missing = names.take(`missing${plural(kind)}`);
	return {
		before: `/** The ${plural(spoken(kind))} of ${withArticle(spoken(managed.type.kind))}. */
const ${targets} = (data: ${data}) =>
	${targetIds(watched.link.fields, type)};

const ${index} = referencesIndex("${indexName(watched.link)}", ${file.managed.type}, ({ data }) => ${targets}(data));

`,
		index,
		watch: `watch(${type}, { map: cacheList(${index}), when: contentChanged })`,
		reconcile: `		const ${missing} = ${targets}(${file.managed.resource}.data).filter(
			(each) => ctx.cache.get(${type}, each) === undefined,
		);
		if (${missing}.length > 0) {
			const message = \`missing: \${${missing}.map((each) => each.name).join(", ")}\`;
			await report(Condition_State.FALSE, "No${kind}", message);
			return;
		}
`,
		count: "",
	};
}

function backText(watched: WatchedType, managed: UsedType, file: File): WatchedText {
	const { names, imports } = file;
	const { kind } = watched.type;
	imports.add(entries.controllers, "referencesIndex");
	imports.add(entries.types, "idOf");
	const type = importType(watched, names, imports);
	const data = importData(watched, file);
	const targets = names.take(`${plural(camelCase(managed.type.kind))}Of`);
	const index = names.take(`${plural(camelCase(kind))}By${managed.type.kind}`);
	const resources = names.take(plural(camelCase(kind)));
	return {
		before: `/** The ${plural(spoken(managed.type.kind))} that ${withArticle(spoken(kind))} references. */
const ${targets} = (data: ${data}) =>
	${targetIds(watched.link.fields, file.managed.type)};

const ${index} = referencesIndex("${indexName(watched.link)}", ${type}, ({ data }) => ${targets}(data));

`,
		index,
		watch: `watch(${type}, { map: (_, { data }) => ${targets}(data), when: contentChanged })`,
		reconcile: `		const ${resources} = ctx.cache.list(${index}, id);\n`,
		count: `${plural(spoken(kind))}: \${${resources}.length}`,
	};
}

function unrelatedText(watched: WatchedType, managed: UsedType, file: File): WatchedText {
	const { names, imports } = file;
	const { kind } = watched.type;
	const type = importType(watched, names, imports);
	const all = names.take(`all${plural(managed.type.kind)}`);
	const resources = names.take(plural(camelCase(kind)));
	imports.addType(entries.controllers, "Mapper");
	return {
		before: `/** Every ${spoken(managed.type.kind)}: it has no reference to ${withArticle(spoken(kind))} that would narrow it down. */
const ${all}: Mapper = ({ cache }) =>
	cache.list(${file.managed.type}).flatMap(({ resource }) => resource.id ?? []);

`,
		index: undefined,
		watch: `watch(${type}, { map: ${all}, when: contentChanged })`,
		reconcile: `		const ${resources} = ctx.cache.list(${type});\n`,
		count: `${plural(spoken(kind))}: \${${resources}.length}`,
	};
}

function writtenText(
	written: UsedType,
	managed: UsedType,
	file: File,
): { readonly watch: string; readonly reconcile: string } {
	const { names, imports } = file;
	const { type: known } = written;
	imports.add("@bufbuild/protobuf", "create");
	imports.add(entries.controllers, "ownerOfType");
	imports.add(entries.controllers, "watch");
	imports.add(entries.types, "idOf");
	const type = importType(written, names, imports);
	const schema = names.take(`${known.message.name}Schema`);
	imports.add(generatedPath(known), `${known.message.name}Schema`, schema);
	const data = initLiteral(known.message, requiredData(written)) ?? "{}";
	return {
		watch: `watch(${type}, { map: ownerOfType(${file.managed.type}), when: contentChanged })`,
		reconcile: `		// The ${spoken(known.kind)} that should exist, always computed from the ${spoken(managed.type.kind)}.
		await ctx.writeIfChanged(${type}, {
			id: idOf(${type}, id.name, id.tenancy),
			owner: ${file.managed.resource}.resource.id,
			data: create(${schema}, ${data.replaceAll("\n", "\n\t\t\t")}),
		});
`,
	};
}

/** The data of an example that a type with rules may insist on. References are not copied: they need targets. */
function requiredData({ type, example }: UsedType): JsonObject {
	const references = new Set(type.references.flatMap(({ field }) => [field.name, field.jsonName]));
	return type.hasRules
		? Object.fromEntries(Object.entries(example.data).filter(([key]) => !references.has(key)))
		: {};
}

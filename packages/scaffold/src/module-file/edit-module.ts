import {
	type ArrayExpression,
	type ObjectExpression,
	type ObjectProperty,
	type ParseResult,
	type Program,
	parseSync,
	Visitor,
} from "oxc-parser";
import { appendItem, type Insertion, indentationAt, withInsertions } from "./text-edits.ts";

/** What to add to a module. */
export interface ModuleAddition {
	/** The list that it is added to. */
	readonly list: "types" | "controllers";
	/** The name of the export. */
	readonly name: string;
	/** The file that exports it, from the folder of the module, without its extension: `./types/zone`. */
	readonly from: string;
}

/**
 * The text of a module file with an import, and an entry in the list that is passed to `defineModule`. All other text
 * stays as it is.
 *
 * @returns `undefined` if the file does not have the form that this understands: one call of `defineModule` with an
 * object whose list is an array, or a constant of the file that is one.
 */
export function addToModule(source: string, addition: ModuleAddition): string | undefined {
	const parsed = parse(source);
	if (parsed === undefined) {
		return undefined;
	}
	const definition = definitionIn(parsed.program);
	if (definition === undefined || uses(parsed.program, addition.name)) {
		return undefined;
	}
	const insertion = listInsertion(source, parsed, definition, addition);
	if (insertion === undefined) {
		return undefined;
	}
	const result = withInsertions(source, [
		...importInsertion(source, parsed, addition),
		...insertion,
	]);
	return hasAddition(source, result, addition) ? result : undefined;
}

/** The lines that a person adds if the module can't be edited. */
export function linesFor({ list, name, from }: ModuleAddition): readonly string[] {
	return [`import { ${name} } from "${from}.ts";`, `${list}: [..., ${name}]`];
}

/** `undefined` if the text has errors. */
function parse(source: string): ParseResult | undefined {
	const parsed = parseSync("module.ts", source);
	return parsed.errors.length === 0 ? parsed : undefined;
}

/** Whether the text mentions the name for anything. */
function uses(program: Program, name: string): boolean {
	let found = false;
	new Visitor({
		Identifier: (identifier) => {
			found ||= identifier.name === name;
		},
	}).visit(program);
	return found;
}

/** The argument of the only call of `defineModule`. */
function definitionIn(program: Program): ObjectExpression | undefined {
	const found: (ObjectExpression | undefined)[] = [];
	new Visitor({
		CallExpression: ({ callee, arguments: [first] }) => {
			if (callee.type === "Identifier" && callee.name === "defineModule") {
				found.push(first?.type === "ObjectExpression" ? first : undefined);
			}
		},
	}).visit(program);
	return found.length === 1 ? found[0] : undefined;
}

function listInsertion(
	source: string,
	{ program, comments }: ParseResult,
	definition: ObjectExpression,
	{ list, name }: ModuleAddition,
): readonly Insertion[] | undefined {
	const property = propertyOf(definition, list);
	if (property === undefined) {
		const last = definition.properties.at(-1);
		return definition.properties.some(({ type }) => type === "SpreadElement")
			? undefined
			: appendItem(source, definition, last, `${list}: [${name}]`, comments);
	}
	const array = arrayOf(property, program);
	const last = array?.elements.at(-1);
	return array === undefined || last === null
		? undefined
		: appendItem(source, array, last, name, comments);
}

function propertyOf(definition: ObjectExpression, name: string): ObjectProperty | undefined {
	for (const property of definition.properties) {
		if (
			property.type === "Property" &&
			!property.computed &&
			((property.key.type === "Identifier" && property.key.name === name) ||
				(property.key.type === "Literal" && property.key.value === name))
		) {
			return property;
		}
	}
	return undefined;
}

/** The array that is the value, or that a constant of the file has as its value. */
function arrayOf({ value }: ObjectProperty, program: Program): ArrayExpression | undefined {
	if (value.type === "ArrayExpression") {
		return value;
	}
	if (value.type !== "Identifier") {
		return undefined;
	}
	for (const statement of program.body) {
		for (const { id, init } of statement.type === "VariableDeclaration"
			? statement.declarations
			: []) {
			if (id.type === "Identifier" && id.name === value.name) {
				return init?.type === "ArrayExpression" ? init : undefined;
			}
		}
	}
	return undefined;
}

/** The import, among the relative ones in their order if they have one, in the style of the others. */
function importInsertion(
	source: string,
	{ module }: ParseResult,
	{ name, from }: ModuleAddition,
): readonly Insertion[] {
	const imports = module.staticImports.map(({ start, end, moduleRequest }) => ({
		...{ start, end },
		path: moduleRequest.value,
		quote: source[moduleRequest.start] ?? '"',
	}));
	const relative = imports.filter(({ path }) => path.startsWith("."));
	const extension = relative.some(({ path }) => path.endsWith(".js")) ? ".js" : ".ts";
	const { quote } = relative[0] ?? imports[0] ?? { quote: '"' };
	const last = imports.at(-1);
	const semicolon = last === undefined || source[last.end - 1] === ";" ? ";" : "";
	const lineBreak = source.includes("\r\n") ? "\r\n" : "\n";
	const path = `${from}${extension}`;
	const line = `import { ${name} } from ${quote}${path}${quote}${semicolon}`;
	const isSorted = relative.every(
		(each, at) => at === 0 || (relative[at - 1]?.path ?? "") <= each.path,
	);
	const next = isSorted ? relative.find((each) => each.path > path) : undefined;
	if (next !== undefined && indentationAt(source, next.start) === "") {
		return [{ at: next.start, text: `${line}${lineBreak}` }];
	}
	return last === undefined
		? [{ at: 0, text: `${line}${lineBreak}` }]
		: [{ at: last.end, text: `${lineBreak}${line}` }];
}

/** Whether the edited text parses, and differs from the original by the addition. */
function hasAddition(before: string, after: string, { list, name, from }: ModuleAddition): boolean {
	const parsed = parse(after);
	const names = parsed && namesIn(parsed.program, list);
	const expected = [...(namesIn(parse(before)?.program, list) ?? []), name];
	return (
		parsed !== undefined &&
		names?.join() === expected.join() &&
		parsed.module.staticImports.some(
			({ moduleRequest, entries }) =>
				moduleRequest.value.startsWith(`${from}.`) &&
				entries.some(({ localName }) => localName.value === name),
		)
	);
}

/** The text of the items of a list, as far as they are names. */
function namesIn(program: Program | undefined, list: string): readonly string[] | undefined {
	const definition = program && definitionIn(program);
	const property = definition && propertyOf(definition, list);
	const array = property && program && arrayOf(property, program);
	return array?.elements.map((each) =>
		each?.type === "Identifier" ? each.name : (each?.type ?? ""),
	);
}

import { type JsonObject, ScalarType } from "@bufbuild/protobuf";
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
import { initLiteral, literalOf } from "./literal.ts";

/** Identifiers that the text of a test uses for something else. */
const used = [
	...["assert", "test", "fromJson", "startTestServer", "TestServer", "startServer", "server"],
	...["reportOn", "before", "after"],
];

/** One type of the test: what its file calls it, and statements on its resource. */
interface Subject {
	readonly type: string;
	/** Expects a server named `server`. */
	readonly write: string;
	readonly remove: string;
	readonly read: string;
	readonly kind: string;
}

/** The test of a generated controller, which passes as it stands. */
export function testFile(controller: ControllerDefinition): string {
	const { managed, watched, written } = controller;
	const name = camelCase(controller.name);
	const names = new Identifiers([...used, name]);
	const imports = new Imports();
	imports.add("node:test", "test");
	imports.add(entries.testing, "startTestServer");
	imports.addType(entries.testing, "TestServer");
	imports.add(`./${kebabCase(controller.name)}.ts`, name);
	const constants: string[] = [];
	const subjectOf = (each: UsedType, data: JsonObject) =>
		subject(each, data, names, imports, constants);
	const others = watched.map((each) => ({
		watched: each,
		subject: subjectOf(each, dataOfWatched(each, managed)),
	}));
	const main = subjectOf(managed, dataOfManaged(managed, watched));
	const computed = written && withName(subjectOf(written, {}), managed);
	const types = [main, ...others.map(({ subject }) => subject), ...(computed ? [computed] : [])];
	const writeAll = [...others.map(({ subject }) => subject), main].map(({ write }) => write);
	const tests = [
		reconciledTest(main, writeAll, computed),
		...others.map((each) =>
			followsTest(
				each.watched,
				each.subject,
				main,
				others.filter((other) => other !== each).map(({ subject }) => subject.write),
			),
		),
		...(computed === undefined ? [] : [restoredTest(computed, writeAll)]),
		restTest(main, writeAll),
	];
	return `import assert from "node:assert/strict";
${imports}
${constants.join("\n")}${constants.length === 0 ? "" : "\n\n"}const startServer = () =>
	startTestServer({
		types: [${[...new Set(types.map(({ type }) => type))].join(", ")}],
		controllers: [${name}],
	});

/** What the controller reports on ${withArticle(main.kind)}. */
const reportOn = async (server: TestServer) =>
	(${main.read})?.resource.status["${kebabCase(controller.name)}"]?.conditions[0];

${tests.join("\n")}`;
}

function subject(
	{ type: known, definition, example }: UsedType,
	data: JsonObject,
	names: Identifiers,
	imports: Imports,
	constants: string[],
): Subject {
	const type = names.take(definition.name);
	imports.add(importPath(definition), definition.name, type);
	let init = "{}";
	if (Object.keys(data).length > 0) {
		init = names.take(camelCase(known.kind));
		const literal = initLiteral(known.message, data);
		if (literal === undefined) {
			const schema = names.take(`${known.message.name}Schema`);
			imports.add("@bufbuild/protobuf", "fromJson");
			imports.add(generatedPath(known), `${known.message.name}Schema`, schema);
			constants.push(`const ${init} = fromJson(${schema}, ${literalOf(data)});`);
		} else {
			constants.push(`const ${init} = ${literal};`);
		}
	}
	const name = JSON.stringify(example.name);
	return {
		type,
		write: `\tawait server.write(${type}, ${name}, ${init});\n`,
		remove: `\tawait server.delete(${type}, ${name});\n`,
		read: `await server.read(${type}, ${name})`,
		kind: spoken(known.kind),
	};
}

/** The written resource has the name of the managed one. */
function withName(written: Subject, { example }: UsedType): Subject {
	const target = `${written.type}, ${JSON.stringify(example.name)}`;
	return {
		...written,
		read: `await server.read(${target})`,
		remove: `\tawait server.delete(${target});\n`,
	};
}

/** Its example, with references to the watched resources of the test. */
function dataOfManaged({ example }: UsedType, watched: readonly WatchedType[]): JsonObject {
	return watched.reduce<JsonObject>(
		(data, each) =>
			each.link.kind === "one" || each.link.kind === "many"
				? withReference(data, each, each.example.name)
				: data,
		example.data,
	);
}

function dataOfWatched(watched: WatchedType, managed: UsedType): JsonObject {
	const { link, example } = watched;
	return link.kind === "back"
		? withReference(example.data, watched, managed.example.name)
		: example.data;
}

/** The data with only that reference in the fields of a link. */
function withReference(data: JsonObject, { link }: WatchedType, name: string): JsonObject {
	const names = new Set(link.fields.flatMap(({ field }) => [field.name, field.jsonName]));
	const rest = Object.fromEntries(Object.entries(data).filter(([key]) => !names.has(key)));
	const field = link.fields[0]?.field;
	switch (field?.fieldKind) {
		case "list":
			return { ...rest, [field.name]: [{ name }] };
		case "map":
			return {
				...rest,
				[field.name]: { [field.mapKey === ScalarType.BOOL ? "true" : "1"]: { name } },
			};
		default:
			return field === undefined ? rest : { ...rest, [field.name]: { name } };
	}
}

function reconciledTest(
	main: Subject,
	writeAll: readonly string[],
	computed: Subject | undefined,
): string {
	return `test("${withArticle(main.kind)} is reconciled", async () => {
	await using server = await startServer();
${writeAll.join("")}	await server.quiesce();
	assert.equal((await reportOn(server))?.reason, "Reconciled");
${computed === undefined ? "" : `\tassert.ok(${computed.read});\n`}});
`;
}

function followsTest(
	{ link, type }: WatchedType,
	other: Subject,
	main: Subject,
	writeOthers: readonly string[],
): string {
	const isReferenced = link.kind === "one" || link.kind === "many";
	const count = (number: number) =>
		`\tassert.match((await reportOn(server))?.message ?? "", /${plural(other.kind)}: ${number}/);\n`;
	const reason = (text: string) => `\tassert.equal((await reportOn(server))?.reason, "${text}");\n`;
	const without = isReferenced ? reason(`No${type.kind}`) : count(0);
	const name = isReferenced ? `its ${other.kind}` : plural(other.kind);
	return `test("${withArticle(main.kind)} follows ${name}", async () => {
	await using server = await startServer();
${writeOthers.join("")}${main.write}	await server.quiesce();
${without}
${other.write}	await server.quiesce();
${isReferenced ? reason("Reconciled") : count(1)}
${other.remove}	await server.quiesce();
${without}});
`;
}

function restoredTest(computed: Subject, writeAll: readonly string[]): string {
	return `test("${withArticle(computed.kind)} that someone deletes comes back", async () => {
	await using server = await startServer();
${writeAll.join("")}	await server.quiesce();
${computed.remove}	await server.quiesce();
	assert.ok(${computed.read});
});
`;
}

function restTest(main: Subject, writeAll: readonly string[]): string {
	return `test("nothing is written while nothing changes", async () => {
	await using server = await startServer();
${writeAll.join("")}	await server.quiesce();
	const before = (${main.read})?.resource.version;
	await server.advance(3_600_000); // An hour, on the clock of the test.
	const after = (${main.read})?.resource.version;
	assert.equal(after, before);
});
`;
}

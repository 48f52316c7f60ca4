import { builtinModules } from "node:module";
import { ScaffoldError } from "../scaffold-error.ts";

const pattern = /^[a-z][a-z\d]*([-._][a-z\d]+)*$/;

/** In characters. A longer one makes file names and messages hard to read. */
const lengths = { min: 2, max: 60 };

/** Groups of Plinth's own types and packages, and packages that every project imports. */
const taken = ["buf", "google", "internal", "meta", "plinth", "schema", "tenancy"];

/** Names that npm does not accept for a package, or that one of the dependencies has. */
const npmReserved = ["favicon.ico", "node_modules", "typescript", ...builtinModules];

/** Words that can't begin the name of a type in a proto, such as `message.v1.Site`. */
const protoReserved = [
	...["bool", "bytes", "double", "enum", "extend", "extensions", "fixed32", "fixed64", "float"],
	...["group", "import", "int32", "int64", "map", "message", "oneof", "option", "optional"],
	...["package", "public", "repeated", "required", "reserved", "returns", "rpc", "service"],
	...["sfixed32", "sfixed64", "sint32", "sint64", "stream", "string", "syntax", "uint32"],
	...["uint64", "weak"],
];

/** Words that can't be in the name of a package in Java, C# or Python, for which clients may be generated. */
const keywords = [
	...["abstract", "and", "as", "assert", "async", "await", "base", "boolean", "break", "byte"],
	...["case", "catch", "char", "class", "const", "continue", "decimal", "def", "default"],
	...["delegate", "del", "do", "elif", "else", "event", "except", "explicit", "extends", "extern"],
	...["false", "final", "finally", "fixed", "for", "foreach", "from", "global", "goto", "if"],
	...["implements", "implicit", "in", "instanceof", "int", "interface", "is", "lambda", "lock"],
	...["long", "namespace", "native", "new", "none", "nonlocal", "not", "null", "object"],
	...["operator", "or", "out", "override", "params", "pass", "private", "protected", "raise"],
	...["readonly", "ref", "return", "sbyte", "sealed", "short", "sizeof", "static", "struct"],
	...["super", "switch", "synchronized", "this", "throw", "throws", "transient", "true", "try"],
	...["typeof", "uint", "ulong", "unchecked", "unsafe", "ushort", "using", "virtual", "void"],
	...["volatile", "while", "with", "yield"],
];

/**
 * Checks the name of a project, which is the name of its npm package, and that of its Protobuf package (`protoPackage`).
 *
 * @throws ScaffoldError.
 */
export function checkProjectName(name: string): void {
	if (!pattern.test(name) || name.length < lengths.min || name.length > lengths.max) {
		const suggestion = suggestionFor(name);
		throw new ScaffoldError(
			`"${name}" can't be the name of a project, since it is also the name of an npm package and of a Protobuf package: use ${lengths.min} to ${lengths.max} lower-case letters and digits, with single hyphens, underscores or dots between them, beginning with a letter${suggestion === undefined ? "" : `, as in ${suggestion}`}`,
		);
	}
	const reason = reservation(name);
	if (reason !== undefined) {
		throw new ScaffoldError(
			`"${name}" can't be the name of a project: ${reason}. Use another one, such as ${name}-platform`,
		);
	}
}

/** The first part of the Protobuf package of a project's types: `my_platform` for `my-platform`. */
export function protoPackage(name: string): string {
	return name.replaceAll(/[-.]/g, "_");
}

function reservation(name: string): string | undefined {
	const group = protoPackage(name);
	if (taken.includes(group)) {
		return `the Protobuf package ${group} is not yours to define`;
	}
	if (npmReserved.includes(name)) {
		return "the name is reserved for a package of npm, or a module of Node.js";
	}
	if (protoReserved.includes(group)) {
		return "it is a keyword of Protobuf";
	}
	return keywords.includes(group)
		? "it is a keyword of a language for which clients may be generated"
		: undefined;
}

/** A similar name that is valid, if any. */
function suggestionFor(name: string): string | undefined {
	const similar = name
		.replaceAll(/([a-z\d])([A-Z])/g, "$1-$2")
		.toLowerCase()
		.replaceAll(/[^a-z\d]+/g, "-")
		.replace(/^[^a-z]+/, "")
		.slice(0, lengths.max)
		.replace(/-$/, "");
	return pattern.test(similar) &&
		similar.length >= lengths.min &&
		reservation(similar) === undefined
		? similar
		: undefined;
}

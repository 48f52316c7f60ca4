import type { DescField, DescMessage, DescOneof } from "@bufbuild/protobuf";
import type { GeneratedFile, Printable } from "@bufbuild/protoplugin";
import type { FileScope } from "./file-scope.ts";
import { hasPrototype, presenceOf } from "./presence.ts";
import { copierOf } from "./value-copy.ts";

/**
 * Prints the cloner of a message: it makes a shallow copy of the object, and then replaces all that
 * is mutable in there by copies.
 *
 * An object made by spreading has the same properties in the same order as its original, and in V8
 * the same hidden class, whether the original came from `create` or from `fromBinary`: code that
 * reads messages sees no further shapes. Where protobuf-es tells presence by a prototype, the clone
 * has that prototype.
 */
export function printCloner(output: GeneratedFile, scope: FileScope, message: DescMessage): void {
	const shape = output.importShape(message);
	const cloner = scope.cloner(message);
	output.print();
	output.print(output.jsDoc(`Clones a message ${message.typeName}.`));
	output.print(
		scope.exports(message) ? output.export("function", cloner.name) : ["function ", cloner],
		["(message: ", shape, "): ", shape, " {"],
	);
	output.print("  const copy: ", shape, " = ", shallowCopy(scope, message), ";");
	for (const member of message.members) {
		if (member.kind === "oneof") {
			printOneof(output, scope, member);
		} else {
			printField(output, scope, member);
		}
	}
	output.print`  if (copy.$unknown !== undefined) {
    copy.$unknown = ${scope.helper("copyUnknownFields")}(copy.$unknown);
  }
  return copy;
}`;
}

function shallowCopy(scope: FileScope, message: DescMessage): Printable {
	const object = scope.own("Object");
	return hasPrototype(message)
		? [object, ".assign(", object, ".create(", object, ".getPrototypeOf(message)), message)"]
		: "{ ...message }";
}

function printField(output: GeneratedFile, scope: FileScope, field: DescField): void {
	const property = `copy.${field.localName}`;
	const copier = copierOf(scope, field);
	switch (field.fieldKind) {
		case "list":
			output.print("  ", property, " = ", listCopy(scope, property, copier), ";");
			return;
		case "map":
			output.print("  ", property, " = ", mapCopy(scope, property, copier), ";");
			return;
	}
	if (copier === undefined) {
		return;
	}
	const assignment: Printable = [property, " = ", copier, "(", property, ");"];
	const presence = presenceOf(field);
	if (presence === "always") {
		output.print("  ", assignment);
		return;
	}
	const isOwn: Printable = [" && ", scope.own("Object"), `.hasOwn(copy, "${field.localName}")`];
	output.print`  if (${property} !== undefined${presence === "own-property" ? isOwn : ""}) {
    ${assignment}
  }`;
}

function listCopy(scope: FileScope, list: string, copier: Printable | undefined): Printable {
	return copier === undefined
		? [list, ".slice()"]
		: [scope.helper("copyItems"), "(", list, ", ", copier, ")"];
}

function mapCopy(scope: FileScope, map: string, copier: Printable | undefined): Printable {
	return copier === undefined
		? ["{ ...", map, " }"]
		: [scope.helper("copyEntries"), "(", map, ", ", copier, ")"];
}

function printOneof(output: GeneratedFile, scope: FileScope, oneof: DescOneof): void {
	const property = `copy.${oneof.localName}`;
	const mutable = oneof.fields.flatMap((field) => {
		const copier = copierOf(scope, field);
		return copier === undefined ? [] : [{ name: field.localName, copier }];
	});
	if (mutable.length === 0) {
		output.print`  ${property} = { ...${property} };`;
		return;
	}
	output.print`  switch (${property}.case) {`;
	for (const { name, copier } of mutable) {
		output.print`    case "${name}":
      ${property} = { case: "${name}", value: ${copier}(${property}.value) };
      break;`;
	}
	output.print`    default:
      ${property} = { ...${property} };
  }`;
}

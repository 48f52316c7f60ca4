import type { DescFile } from "@bufbuild/protobuf";
import { capitalized, plural, spoken, withArticle } from "../names/words.ts";
import type { Scope } from "../project/project-types.ts";
import { fieldTypes, type NewField, type NewReference } from "./parse-fields.ts";

/** A type to be generated. */
export interface TypeDefinition {
	readonly kind: string;
	/** As in `acme.iot.v1`. */
	readonly package: string;
	readonly scope: Scope;
	readonly fields: readonly NewField[];
}

const scopeTexts: Readonly<Record<Scope, string>> = {
	cluster: "in no partition",
	partition: "in a partition",
	namespace: "in a namespace",
};

/** The maximum number of plain fields in the table of a type. */
const maxColumns = 4;

/**
 * The proto of a type, formatted as by `buf format`.
 *
 * @param sibling - a file of the same package, whose file options the new one must share.
 */
export function protoFile(type: TypeDefinition, sibling: DescFile | undefined): string {
	const { kind, scope, fields } = type;
	const name = spoken(kind);
	return `syntax = "proto3";

package ${type.package};

${importsOf(fields)
	.map((path) => `import "${path}";`)
	.join("\n")}
${fileOptions(sibling)}
// ${kind} describes ${withArticle(name)}, ${scopeTexts[scope]}.
message ${kind} {
  option (plinth.resource.v1.spec) = {scope: SCOPE_${scope.toUpperCase()}};
${tableOption(fields)}
${fields.map((field, at) => fieldText(field, at + 1, name)).join("\n")}
}
`;
}

function importsOf(fields: readonly NewField[]): readonly string[] {
	const hasReferences = fields.some(({ kind }) => kind === "reference");
	const has = (type: string) =>
		fields.some((field) => field.kind === "plain" && field.type === type);
	return [
		...(has("duration") ? ["google/protobuf/duration.proto"] : []),
		...(has("timestamp") ? ["google/protobuf/timestamp.proto"] : []),
		"plinth/resource/v1/annotations.proto",
		...(hasReferences
			? [
					"plinth/resource/v1/resource.proto",
					"plinth/schema/v1/annotations.proto",
					"plinth/type/v1/table.proto",
				]
			: []),
	];
}

/** The options that all files of a package must share. */
function fileOptions(sibling: DescFile | undefined): string {
	const options = sibling?.proto.options;
	const lines = Object.entries({
		csharp_namespace: options?.csharpNamespace,
		go_package: options?.goPackage,
		java_package: options?.javaPackage,
		php_namespace: options?.phpNamespace,
		ruby_package: options?.rubyPackage,
		swift_prefix: options?.swiftPrefix,
	}).flatMap(([name, value]) => (value ? [`option ${name} = ${JSON.stringify(value)};`] : []));
	const multiple = options?.javaMultipleFiles ? ["option java_multiple_files = true;"] : [];
	const sorted = [...lines, ...multiple].sort();
	return sorted.length === 0 ? "" : `\n${sorted.join("\n")}\n`;
}

/** The columns of `plinth get`. Without references, its own choice of columns is as good. */
function tableOption(fields: readonly NewField[]): string {
	const references = fields.filter(({ kind }) => kind === "reference");
	if (references.length === 0) {
		return "";
	}
	const plain = fields.filter((field) => field.kind === "plain" && field.type !== "bytes");
	const columns = [
		...plain.slice(0, maxColumns).map(({ name }) => `      {path: "${name}"}`),
		...references.map(
			({ name }) => `      {
        heading: "${name.replaceAll("_", "-").toUpperCase()}"
        path: "${name}.name"
      }`,
		),
	];
	return `  option (plinth.type.v1.table) = {
    columns: [
${columns.join(",\n")}
    ]
  };
`;
}

function fieldText(field: NewField, number: number, owner: string): string {
	if (field.kind === "plain") {
		return `  ${fieldTypes[field.type].proto} ${field.name} = ${number};`;
	}
	return `  // ${ruleComment(field, owner)}
  plinth.resource.v1.Reference ${field.name} = ${number} [(plinth.schema.v1.reference) = {
    type: "${field.type}"
    on_delete: ${field.rule.toUpperCase()}
  }];`;
}

function ruleComment({ target, rule }: NewReference, owner: string): string {
	const other = spoken(target);
	switch (rule) {
		case "block":
			return `${capitalized(withArticle(other))} that ${plural(owner)} reference can't be deleted.`;
		case "cascade":
			return `When that ${other} is deleted, the ${owner} is deleted too.`;
		case "unset":
			return `Cleared when that ${other} is deleted.`;
	}
}

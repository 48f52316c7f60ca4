import type { JsonObject } from "@bufbuild/protobuf";
import { stringify } from "yaml";
import { type ExampleResource, exampleName } from "../project/example-resources.ts";
import { fieldTypes, type NewField } from "./parse-fields.ts";

/** The targets that a generated resource names. */
export interface ExampleTargets {
	/** The references to types of which a file declares a resource, by the field's name. */
	readonly declared: ReadonlyMap<string, ExampleResource>;
	/** The types of the other targets, which must be created first. */
	readonly missing: readonly string[];
}

/** Finds a resource for each reference of a new type. */
export function targetsOf(
	key: string,
	fields: readonly NewField[],
	examples: readonly ExampleResource[],
): ExampleTargets {
	const declared = new Map<string, ExampleResource>();
	const missing = new Set<string>();
	for (const field of fields) {
		if (field.kind === "reference" && field.type !== key) {
			const found = examples.find(({ type }) => type === field.type);
			if (found === undefined) {
				missing.add(field.type);
			} else {
				declared.set(field.name, found);
			}
		}
	}
	return { declared, missing: [...missing] };
}

/** The YAML of one resource of a new type, below a comment. References to the type itself are left out: there is no other one yet. */
export function resourceFile(
	key: string,
	fields: readonly NewField[],
	{ declared }: ExampleTargets,
	comment: string,
): string {
	const data: JsonObject = {};
	for (const field of fields) {
		if (field.kind === "plain") {
			data[field.name] = fieldTypes[field.type].example;
		} else if (field.type !== key) {
			const target = declared.get(field.name);
			const tenancy = target?.tenancy ?? {};
			data[field.name] = {
				name: target?.name ?? exampleName,
				...(Object.keys(tenancy).length > 0 && { tenancy }),
			};
		}
	}
	const resource = { type: key, name: exampleName, ...(Object.keys(data).length > 0 && { data }) };
	return `# ${comment}\n${stringify(resource)}`;
}

import { referenceProblems } from "@plinth/db-constraint";
import type { ResourceType } from "@plinth/resource";
import { ruleProblems, tableProblems } from "@plinth/resource-service";

/**
 * What is wrong with the options of types as far as each type tells by itself, a line each: the type, the
 * field and the reason. Whether the types that references name are there, only the server knows.
 */
export function typeProblems(types: readonly ResourceType[]): readonly string[] {
	return [
		...ruleProblems(types),
		...tableProblems(types),
		...types.flatMap(({ key, schema }) =>
			referenceProblems(schema).map((problem) => `type ${key}: ${problem}`),
		),
	];
}

import { referenceProblems } from "@plinth/db-constraint";
import type { ResourceType } from "@plinth/resource";
import { ruleProblems, tableProblems } from "@plinth/resource-service";

/**
 * The problems of the options of types, one line each with the type, the field and the reason. Only problems that
 * a type shows by itself: whether the types that references name exist is checked by the server.
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

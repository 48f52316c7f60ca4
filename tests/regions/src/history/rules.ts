/** What becomes of a resource whose target is deleted. */
export type Rule = "BLOCK" | "CASCADE" | "UNSET";

/** The rule of each field that is a reference, as `devices.proto` of the example declares it. */
export const rules: Readonly<Record<string, Rule>> = {
	project: "BLOCK",
	rack: "CASCADE",
	lentTo: "UNSET",
	standby: "UNSET",
};

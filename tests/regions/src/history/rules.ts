/** The effect of the deletion of a target on the referencing resource. */
export type Rule = "BLOCK" | "CASCADE" | "UNSET";

/** The rule of each field that is a reference, as `devices.proto` of the example declares it. */
export const rules: Readonly<Record<string, Rule>> = {
	project: "BLOCK",
	rack: "CASCADE",
	lentTo: "UNSET",
	standby: "UNSET",
};

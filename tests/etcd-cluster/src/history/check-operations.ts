import type { Operation } from "./history.ts";
import { findOrder, type Timed } from "./linearizable.ts";

/** What a register holds; registers begin as absent. */
const absent = "";

/** A strong operation, with texts in place of versions. */
type Step =
	| { readonly kind: "saw"; readonly text: string }
	| { readonly kind: "wrote"; readonly text: string; readonly over?: string }
	| { readonly kind: "refused"; readonly other: string; readonly orAbsent: boolean };

/**
 * The problems of strong operations: registers for which no order of the operations explains the responses.
 */
export function linearizabilityProblems(operations: readonly Operation[]): readonly string[] {
	const problems: string[] = [];
	for (const [register, own] of Map.groupBy(operations, (each) => each.register)) {
		const texts = textsOf(own);
		if (typeof texts === "string") {
			problems.push(`${register}: ${texts}`);
			continue;
		}
		const history = own.filter(({ strong }) => strong).flatMap((each) => timed(each, texts));
		const finding = findOrder(history, { initial: absent, step });
		if (finding.kind === "violation") {
			const { call, startMs, endMs } = finding.stuckAt;
			problems.push(
				`${register}: no order of its ${history.length} strong operations explains ${JSON.stringify(call)}, from ${startMs} to ${endMs}`,
			);
		}
	}
	return problems;
}

/** The text of each version in the responses, or a contradiction. */
function textsOf(operations: readonly Operation[]): ReadonlyMap<string, string> | string {
	const texts = new Map<string, string>();
	const versions = new Map<string, string>();
	for (const { outcome } of operations) {
		if (outcome.kind !== "value") {
			continue;
		}
		const { version, text } = outcome;
		if ((texts.get(version) ?? text) !== text) {
			return `version ${version} is that of ${texts.get(version)} and of ${text}`;
		}
		if ((versions.get(text) ?? version) !== version) {
			return `${text} has the versions ${versions.get(text)} and ${version}`;
		}
		texts.set(version, text);
		versions.set(text, version);
	}
	return texts;
}

/** The operation as a step, or none if it proves nothing. */
function timed(
	{ call, outcome, startMs, endMs }: Operation,
	texts: ReadonlyMap<string, string>,
): readonly Timed<Step>[] {
	const textOf = (version: string) => texts.get(version) ?? `what was at ${version}`;
	const known = (step: Step) => [{ call: step, startMs, endMs }];
	if (outcome.kind === "not-done") {
		return [];
	}
	if (outcome.kind === "unknown") {
		// A read without a response proves nothing.
		return call.kind === "read" ? [] : [{ call: wrote(call, textOf), startMs }];
	}
	if (outcome.kind === "conflict") {
		return "version" in call
			? known({
					kind: "refused",
					other: textOf(call.version),
					// To delete what is not there is no conflict.
					orAbsent: call.kind !== "delete",
				})
			: [];
	}
	if (outcome.kind === "absent") {
		return known({ kind: "saw", text: absent });
	}
	return known(
		call.kind === "read"
			? { kind: "saw", text: outcome.kind === "value" ? outcome.text : absent }
			: wrote(call, textOf),
	);
}

function wrote(
	call: Exclude<Operation["call"], { kind: "read" }>,
	textOf: (version: string) => string,
): Step {
	switch (call.kind) {
		case "put":
			return { kind: "wrote", text: call.text };
		case "compare-and-swap":
			return { kind: "wrote", text: call.text, over: textOf(call.version) };
		case "delete":
			return { kind: "wrote", text: absent, over: textOf(call.version) };
	}
}

function step(state: string, call: Step): string | undefined {
	switch (call.kind) {
		case "saw":
			return state === call.text ? state : undefined;
		case "wrote":
			return call.over === undefined || call.over === state ? call.text : undefined;
		case "refused":
			return state !== call.other && (call.orAbsent || state !== absent) ? state : undefined;
	}
}

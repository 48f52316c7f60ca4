import type { Operation } from "./history.ts";
import { RegisterPhases } from "./register-phases.ts";
import type { StorageRecord } from "./storage-record.ts";

/**
 * The problems of writes, compared with the record of the storage: acknowledged writes missing at their
 * version, failed writes that were stored, duplicates, and values that nobody wrote. And of reads: values
 * that were never stored.
 */
export function writeProblems(
	operations: readonly Operation[],
	record: StorageRecord,
): readonly string[] {
	const phases = new RegisterPhases(record.registers);
	const problems: string[] = [];
	const stored = storedTexts(record, problems);
	const written = new Set<string>();
	for (const operation of operations) {
		const { register, call, outcome } = operation;
		const isWrite = call.kind === "put" || call.kind === "compare-and-swap";
		if (isWrite) {
			written.add(call.text);
		}
		if (isWrite && (outcome.kind === "conflict" || outcome.kind === "not-done")) {
			if (stored.has(call.text)) {
				problems.push(
					`${register}: ${call.text} was stored, but its writer received ${outcome.kind}`,
				);
			}
		}
		if (outcome.kind !== "value" && outcome.kind !== "deleted") {
			continue;
		}
		const text = outcome.kind === "value" ? outcome.text : undefined;
		const found = phases.of(register).some((phase) => {
			return phase.revision === Number(outcome.version) && phase.text === text;
		});
		if (!found) {
			const what = call.kind === "read" ? "read" : "acknowledged";
			problems.push(`${register}: ${what} ${text} at ${outcome.version}, which is not there`);
		}
	}
	for (const { register, text, revision } of record.registers) {
		if (text !== undefined && !written.has(text)) {
			problems.push(`${register}: nobody wrote ${text}, stored at ${revision}`);
		}
	}
	return problems;
}

/** The texts in the storage's record; reports those that were stored twice. */
function storedTexts({ registers }: StorageRecord, problems: string[]): ReadonlySet<string> {
	const stored = new Set<string>();
	for (const { register, text, revision } of registers) {
		if (text !== undefined && stored.has(text)) {
			problems.push(`${register}: ${text} was stored again at ${revision}`);
		}
		stored.add(text ?? "");
	}
	return stored;
}

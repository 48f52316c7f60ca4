import { describe, expect, it } from "vitest";
import { leaseProblems } from "./check-leases.ts";
import type { EffectChange, LeaseChange } from "./storage-record.ts";

const lease = "controllers";
const took = (process: number, revision: number, createRevision = revision): LeaseChange => {
	return { kind: "put", lease, revision, createRevision, process };
};
const ended = (revision: number): LeaseChange => ({ kind: "delete", lease, revision });
const wrote = (process: number, revision: number, run: string): EffectChange => {
	return { process, revision, run };
};

function problems(leases: readonly LeaseChange[], effects: readonly EffectChange[] = []) {
	return leaseProblems({ registers: [], leases, effects }, lease);
}

describe("the check of leases", () => {
	it("finds nothing if one holder follows another, and each writes only while it holds the lease", () => {
		const effects = [wrote(1, 11, "a"), wrote(1, 12, "b"), wrote(2, 31, "c")];
		expect(problems([took(1, 10), ended(20), took(2, 30)], effects)).toEqual([]);
	});

	it.each([
		["a lease that is taken from its holder", [took(1, 10), took(2, 20)], []],
		["a key that existed before", [took(1, 10, 5)], []],
		["an end of what nobody held", [took(1, 10), ended(20), ended(21)], []],
		["a write before the first holder", [took(1, 10)], [wrote(1, 9, "a")]],
		["a write between two holders", [took(1, 10), ended(20)], [wrote(1, 21, "a")]],
		["a write of a former holder", [took(1, 10), ended(20), took(2, 30)], [wrote(1, 31, "a")]],
		[
			"a write of the same process's former hold",
			[took(1, 10), ended(20), took(1, 30)],
			[wrote(1, 11, "a"), wrote(1, 31, "a")],
		],
	])("finds %s", (_, leases, effects) => {
		expect(problems(leases, effects)).not.toEqual([]);
	});
});

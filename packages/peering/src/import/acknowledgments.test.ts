import { expect, it } from "vitest";
import { Acknowledgments } from "./acknowledgments.ts";

function acknowledging() {
	const calls: (PromiseWithResolvers<void> & { readonly sequence: bigint })[] = [];
	const failures: unknown[] = [];
	const acknowledgments = new Acknowledgments(
		(sequence) => {
			const call = { ...Promise.withResolvers<void>(), sequence };
			calls.push(call);
			return call.promise;
		},
		(reason) => failures.push(reason),
	);
	const settled = () => new Promise((resolve) => setImmediate(resolve));
	return { acknowledgments, calls, failures, settled };
}

it("acknowledgments are sent one at a time, and each has the newest sequence", async () => {
	const { acknowledgments, calls, settled } = acknowledging();
	for (const sequence of [1n, 40n, 80n]) {
		acknowledgments.add(sequence);
	}
	await settled();
	expect(calls.map(({ sequence }) => sequence)).toEqual([1n]);
	calls[0]?.resolve();
	await settled();
	expect(calls.map(({ sequence }) => sequence)).toEqual([1n, 80n]);
	calls[1]?.resolve();
	await settled();
	expect(calls).toHaveLength(2);
	acknowledgments.add(81n);
	expect(calls.map(({ sequence }) => sequence)).toEqual([1n, 80n, 81n]);
});

it("a failed acknowledgment is reported, fails what follows, and is the last one", async () => {
	const { acknowledgments, calls, failures, settled } = acknowledging();
	acknowledgments.add(1n);
	acknowledgments.add(2n);
	const failure = new Error("the peer is gone");
	calls[0]?.reject(failure);
	await settled();
	expect(failures).toEqual([failure]);
	expect(() => acknowledgments.add(3n)).toThrow(failure);
	expect(calls).toHaveLength(1);
});

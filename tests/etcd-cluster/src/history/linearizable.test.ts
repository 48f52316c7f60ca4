import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { findOrder, type Model, type Timed } from "./linearizable.ts";

/** A call to a register that holds a number: it read one, or it replaced one by another. */
type Step =
	| { readonly kind: "saw"; readonly value: number }
	| { readonly kind: "swapped"; readonly from: number; readonly to: number };

const register: Model<Step, number> = {
	initial: 0,
	step(state, call) {
		if (call.kind === "saw") {
			return state === call.value ? state : undefined;
		}
		return state === call.from ? call.to : undefined;
	},
};

/** Every order of some of the calls, all known ones among them, is looked at. */
function naive(history: readonly Timed<Step>[], state = register.initial): boolean {
	if (history.every(({ endMs }) => endMs === undefined)) {
		return true;
	}
	return history.some((candidate) => {
		const others = history.filter((each) => each !== candidate);
		const mayBeFirst = others.every(
			({ endMs = Number.POSITIVE_INFINITY }) => endMs >= candidate.startMs,
		);
		const after = mayBeFirst ? register.step(state, candidate.call) : undefined;
		return after !== undefined && naive(others, after);
	});
}

const value = fc.nat({ max: 2 });
const call: fc.Arbitrary<Step> = fc.oneof(
	fc.record({ kind: fc.constant("saw" as const), value }),
	fc.record({ kind: fc.constant("swapped" as const), from: value, to: value }),
);
const timed = fc
	.record({
		call,
		startMs: fc.nat({ max: 12 }),
		lastsMs: fc.option(fc.nat({ max: 6 }), { freq: 6 }),
	})
	.map(({ call, startMs, lastsMs }): Timed<Step> => {
		return { call, startMs, ...(lastsMs !== null && { endMs: startMs + lastsMs }) };
	});

describe("the search for an order", () => {
	it("finds one exactly if there is one", () => {
		let found = 0;
		const runs = 3000;
		fc.assert(
			fc.property(fc.array(timed, { maxLength: 6 }), (history) => {
				const finding = findOrder(history, register);
				expect(finding.kind === "linearizable").toBe(naive(history));
				found += finding.kind === "linearizable" ? 1 : 0;
			}),
			{ numRuns: runs },
		);
		expect(found).toBeGreaterThan(runs / 20);
		expect(found).toBeLessThan((runs * 19) / 20);
	});

	it("reports the first call that can't be ordered", () => {
		const finding = findOrder(
			[
				{ call: { kind: "swapped", from: 0, to: 1 }, startMs: 0, endMs: 1 },
				{ call: { kind: "saw", value: 0 }, startMs: 2, endMs: 3 },
			],
			register,
		);
		expect(finding).toMatchObject({ kind: "violation", stuckAt: { startMs: 2 } });
	});

	it("lets a call of unknown outcome come late, or never", () => {
		const unknown: Timed<Step> = { call: { kind: "swapped", from: 0, to: 1 }, startMs: 0 };
		const saw = (value: number, startMs: number): Timed<Step> => {
			return { call: { kind: "saw", value }, startMs, endMs: startMs + 1 };
		};
		expect(findOrder([unknown, saw(0, 2)], register).kind).toBe("linearizable");
		expect(findOrder([unknown, saw(0, 2), saw(1, 4)], register).kind).toBe("linearizable");
		expect(findOrder([unknown, saw(1, 2), saw(0, 4)], register).kind).toBe("violation");
	});
});

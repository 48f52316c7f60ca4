import { expect, it } from "vitest";
import { type StreamFault, withStreamFault } from "./stream-faults.ts";

it.each<[StreamFault, readonly number[]]>([
	["dropped event", [1, 3, 4]],
	["doubled event", [1, 2, 2, 3, 4]],
	["swapped events", [1, 3, 2, 4]],
])("the %s is the one that the fault strikes", async (fault, expected) => {
	async function* numbers() {
		yield* [1, 2, 3, 4];
	}
	expect(await Array.fromAsync(withStreamFault(numbers(), fault, (item) => item === 2))).toEqual(
		expected,
	);
});

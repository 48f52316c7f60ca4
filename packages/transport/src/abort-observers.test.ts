import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { type AbortObserver, observeAbort, unobserveAbort } from "./abort-observers.ts";

/** An observer that appends its name to a list, and may do more. */
function named(name: string, into: string[], more = () => {}): AbortObserver {
	return {
		aborted({ reason }) {
			into.push(`${name}: ${reason}`);
			more();
		},
	};
}

const listeners = (signal: AbortSignal) => getEventListeners(signal, "abort").length;

describe("the observers of a signal", () => {
	it("are all notified once, in their order, through one listener", () => {
		const controller = new AbortController();
		const seen: string[] = [];
		for (const name of ["a", "b", "c"]) {
			observeAbort(controller.signal, named(name, seen));
		}
		expect(listeners(controller.signal)).toBe(1);
		controller.abort("left");
		controller.abort("again");
		expect(seen).toEqual(["a: left", "b: left", "c: left"]);
		expect(listeners(controller.signal)).toBe(0);
	});

	it("leave no listener when the last one is unregistered", () => {
		const { signal } = new AbortController();
		const [first, second] = [named("a", []), named("b", [])];
		observeAbort(signal, first);
		observeAbort(signal, second);
		unobserveAbort(signal, first);
		expect(listeners(signal)).toBe(1);
		unobserveAbort(signal, second);
		unobserveAbort(signal, second);
		expect(listeners(signal)).toBe(0);
		observeAbort(signal, first);
		expect(listeners(signal)).toBe(1);
	});

	it("are not notified if one before them unregisters them", () => {
		const controller = new AbortController();
		const seen: string[] = [];
		const last = named("last", seen);
		observeAbort(
			controller.signal,
			named("first", seen, () => unobserveAbort(controller.signal, last)),
		);
		observeAbort(controller.signal, last);
		controller.abort("left");
		expect(seen).toEqual(["first: left"]);
	});
});

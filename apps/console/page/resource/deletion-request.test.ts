import { expect, it } from "vitest";
import { markedAtMs, requesterOf } from "./deletion-request.ts";

it("reads when a resource was marked, if that is a time", () => {
	expect(markedAtMs({ metadata: { deletionTimestamp: "2026-01-02T03:04:05.000Z" } })).toBe(
		Date.UTC(2026, 0, 2, 3, 4, 5),
	);
	expect(markedAtMs({ metadata: { deletionTimestamp: "yesterday" } })).toBe(undefined);
	expect(markedAtMs({ metadata: {} })).toBe(undefined);
});

it("finds who requested a deletion in the event about it alone", () => {
	const event = (message: string, source = "plinth", reason = "DeletionWaits") => ({
		...{ message, source, reason },
	});
	const message = "deletion requested by ann; it waits for backup, billing";
	expect(requesterOf([event("x", "plinth", "Other"), event(message)])).toBe("ann");
	expect(requesterOf([event(message, "a-controller")])).toBe(undefined);
	expect(requesterOf([event("ann has requested it")])).toBe(undefined);
	expect(requesterOf([])).toBe(undefined);
});

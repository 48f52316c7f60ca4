import { describe, expect, it } from "vitest";
import { type Candidate, chooseServer } from "./choose-server.ts";
import type { HealthState } from "./server-health.ts";

function server(
	name: string,
	state: HealthState,
	calls = 0,
	isPreferred = state === "healthy",
): Candidate & { readonly name: string } {
	return { name, calls, health: { state, isPreferred } };
}

const none: ReadonlySet<never> = new Set();

describe("the server for a call", () => {
	it("is the healthy one with the fewest calls", () => {
		const servers = [server("a", "healthy", 2), server("b", "healthy", 1), server("c", "unknown")];
		for (let start = 0; start < servers.length; start += 1) {
			expect(chooseServer(servers, none, start)?.name).toBe("b");
		}
	});

	it("is one that has not responded with Unavailable since its last check, if there is one", () => {
		const [a, b] = [server("a", "healthy", 0, false), server("b", "healthy", 9)];
		expect(chooseServer([a, b], none, 0)).toBe(b);
		expect(chooseServer([a], none, 0)).toBe(a);
	});

	it("alternates between equal ones", () => {
		const servers = [server("a", "healthy"), server("b", "healthy")];
		expect([0, 1].map((start) => chooseServer(servers, none, start)?.name)).toEqual(["a", "b"]);
	});

	it("is one that was not tried, even if it is less well", () => {
		const [a, b] = [server("a", "healthy"), server("b", "unknown", 9)];
		expect(chooseServer([a, b], new Set([a]), 0)).toBe(b);
		expect(chooseServer([a], new Set([a]), 0)).toBe(a);
	});

	it("is never one that was ejected, or that was added and not checked yet", () => {
		expect(chooseServer([server("a", "ejected"), server("b", "new")], none, 0)).toBeUndefined();
		expect(chooseServer([], none, 0)).toBeUndefined();
	});
});

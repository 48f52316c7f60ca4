import { describe, expect, it } from "vitest";
import { Connections } from "./connections.ts";

describe("connections to other deployments", () => {
	it("are one for each address, and forgotten where servers are gone", () => {
		const connections = new Connections((next) => next);
		const first = connections.open("http://127.0.0.1:1");
		const second = connections.open("http://127.0.0.1:2");
		for (let port = 3; port <= 4_096; port++) {
			connections.open(`http://127.0.0.1:${port}`);
		}
		expect(connections.open("http://127.0.0.1:1")).toBe(first);
		connections.open("http://127.0.0.1:5000");
		expect(connections.open("http://127.0.0.1:1")).toBe(first);
		expect(connections.open("http://127.0.0.1:2")).not.toBe(second);
		connections.close();
	});
});

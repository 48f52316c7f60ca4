import { describe, expect, it } from "vitest";
import { runPlinth } from "../run-plinth.fixture.ts";

describe("plinth console", () => {
	it("opens the console of the server, below its prefix, and prints the URL", async () => {
		const opened: string[] = [];
		const openUrl = async (url: string) => opened.push(url) > 0;
		for (const [server, url] of [
			["127.0.0.1:7575", "http://127.0.0.1:7575/console/"],
			["https://plinth.example/team/", "https://plinth.example/team/console/"],
		] as const) {
			const run = await runPlinth(["console", "--server", server], { openUrl });
			expect(run).toEqual({ code: 0, out: `${url}\n`, err: "" });
			expect(opened.at(-1)).toBe(url);
		}
	});

	it("says so when there is no browser, and only prints the URL if it is asked to", async () => {
		const args = ["console", "--server", "127.0.0.1:7575"];
		const without = await runPlinth(args, { openUrl: async () => false });
		expect([without.code, without.out]).toEqual([0, "http://127.0.0.1:7575/console/\n"]);
		expect(without.err).toContain("no browser could be started: open this URL in one");
		const printed = await runPlinth([...args, "--print"]);
		expect(printed).toEqual({ code: 0, out: "http://127.0.0.1:7575/console/\n", err: "" });
	});
});

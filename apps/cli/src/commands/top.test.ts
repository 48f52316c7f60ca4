import { PolicyAuthorizer } from "@plinth/resource-service";
import { silentLogger } from "@plinth/runtime";
import { createServer, defineModule, type ServerOptions } from "@plinth/server";
import { describe, expect, it, onTestFinished } from "vitest";
import { Film } from "../cinema.fixture.ts";
import { startCinema } from "../cinema-server.fixture.ts";
import type { Terminal } from "../io.ts";
import { runPlinth, startPlinth } from "../run-plinth.fixture.ts";

async function startServer(options: Partial<ServerOptions> = {}) {
	const server = createServer({
		storage: { kind: "memory" },
		listen: { host: "127.0.0.1", port: 0 },
		modules: [defineModule({ name: "cinema", types: [Film] })],
		logger: silentLogger,
		...options,
	});
	await server.start();
	onTestFinished(() => server.stop());
	return server;
}

/** A terminal whose keys and size the test decides. */
class FakeTerminal implements Terminal {
	columns = 80;
	rows = 24;
	#handlers: Parameters<Terminal["open"]>[0] | undefined;

	get isOpen(): boolean {
		return this.#handlers !== undefined;
	}

	readonly size = () => ({ columns: this.columns, rows: this.rows });

	readonly open: Terminal["open"] = (handlers) => {
		this.#handlers = handlers;
		return () => {
			this.#handlers = undefined;
		};
	};

	press(key: string): void {
		this.#handlers?.onKey(key);
	}

	resize(columns: number, rows: number): void {
		[this.columns, this.rows] = [columns, rows];
		this.#handlers?.onResize();
	}
}

const entered = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const left = "\x1b[?7h\x1b[?25h\x1b[?1049l";
const cleared = "\x1b[K\x1b[J";

/** Starts `plinth top` in a terminal. */
function startTop(server: string, ...args: readonly string[]) {
	const terminal = new FakeTerminal();
	const run = startPlinth(["top", "--server", server, ...args], { terminal, width: 80 });
	/** The lines of the last complete drawing. */
	const screen = () => {
		const drawn = run.out().replace(left, "").split("\x1b[H").at(-1) ?? "";
		return drawn.replaceAll("\x1b[K", "").replace("\x1b[J", "").split("\r\n");
	};
	return { ...run, terminal, screen };
}

describe("plinth top", () => {
	it("prints one overview, with rates, if the output is no terminal, or with --once", async () => {
		const { address } = await startServer();
		const piped = await runPlinth(["top", "--server", address]);
		expect(piped).toMatchObject({ code: 0, err: "" });
		expect(piped.out).toMatch(/^http.* 1 server .*\nmemory version \d+ {2}\d+ resources/);
		expect(piped.out).toMatch(/^tenancy\.v1\.Partition +1 /m);
		expect(piped.out).not.toContain("\x1b");
		const terminal = new FakeTerminal();
		const once = await runPlinth(["top", "--once", "--server", address], { terminal });
		expect(once.out).toContain("CONTROLLER");
		expect(once.out).not.toContain(entered);
	});

	it("fails, and does not wait, if the connection is lost before it has rates", async () => {
		const server = await startServer();
		const once = startPlinth(["top", "--once", "--server", server.address]);
		// The first overview arrives at once, and the next one half a second later at the earliest.
		await new Promise((resolve) => setTimeout(resolve, 400));
		await server.stop();
		const { code, out, err } = await once.ended;
		expect([code, out]).toEqual([6, ""]);
		expect(err).toMatch(/^plinth: /);
	});

	it("prints JSON and YAML once", async () => {
		const { address } = await startServer();
		const terminal = new FakeTerminal();
		const json = await runPlinth(["top", "-o", "json", "--server", address], { terminal });
		expect(JSON.parse(json.out)).toMatchObject({
			...{ rate_interval: expect.stringMatching(/s$/), storage: { kind: "memory" } },
			servers: [{ server: { address }, process: {} }],
		});
		const yaml = await runPlinth(["top", "-o", "yaml", "--server", address]);
		expect(yaml.out).toMatch(/^taken_at: /);
	});

	it("draws in place, and restores the terminal when q is pressed", async () => {
		const { address } = await startServer();
		const run = startTop(address, "--interval", "1s");
		await run.prints("CONTROLLER");
		expect(run.terminal.isOpen).toBe(true);
		run.terminal.press("x");
		// The second one.
		await run.prints(/CONTROLLER[\s\S]*CONTROLLER/);
		expect(run.screen()[0]).toContain(address);
		run.terminal.press("q");
		const { code, out, err } = await run.ended;
		expect([code, err]).toEqual([0, ""]);
		expect(out.startsWith(entered)).toBe(true);
		expect(out.endsWith(cleared + left)).toBe(true);
		expect(run.terminal.isOpen).toBe(false);
	});

	it("restores the terminal when it is interrupted, by a signal or by the key", async () => {
		const { address } = await startServer();
		for (const interrupt of [
			(run: ReturnType<typeof startTop>) => run.interrupt(),
			(run: ReturnType<typeof startTop>) => run.terminal.press("\u0003"),
		]) {
			const run = startTop(address);
			await run.prints("CONTROLLER");
			interrupt(run);
			const { code, out } = await run.ended;
			expect(code).toBe(130);
			expect(out.endsWith(left)).toBe(true);
			expect(run.terminal.isOpen).toBe(false);
		}
	});

	it("fits the terminal, also when its size changes", async () => {
		const { address } = await startServer();
		const run = startTop(address);
		await run.prints("CONTROLLER");
		for (const [columns, rows] of [
			[200, 50],
			[80, 10],
			[20, 3],
			[1, 1],
		] as const) {
			run.terminal.resize(columns, rows);
			expect(run.screen().length).toBeLessThanOrEqual(rows);
			if (columns >= 80) {
				expect(Math.max(...run.screen().map(({ length }) => length))).toBeLessThan(columns);
			}
		}
		run.terminal.press("q");
		await run.ended;
	});

	it("says that the connection is lost, and goes on when the server is there again", async () => {
		const first = await startServer();
		const port = Number(new URL(first.address).port);
		const run = startTop(first.address);
		await run.prints("CONTROLLER");
		await first.stop();
		await run.prints("connection lost: ");
		const lost = run.out().lastIndexOf("connection lost: ");
		// What was known is still shown.
		expect(run.screen().join("\n")).toContain("CONTROLLER");
		await startServer({ listen: { host: "127.0.0.1", port } });
		while (run.screen().join("\n").includes("connection lost") || run.out().length <= lost) {
			await new Promise((resolve) => setTimeout(resolve, 20));
		}
		run.terminal.press("q");
		expect(await run.ended).toMatchObject({ code: 0 });
	});

	it("restores the terminal, and explains it, if the rights are missing or are revoked", async () => {
		const authorizer = new PolicyAuthorizer();
		const rules = [{ operations: ["operator:read"], type: "internal.v1.Server" }];
		authorizer.grant("operator", { subject: "operator", rules });
		authorizer.grant("other", { subject: "other", rules: [] });
		const { address } = await startServer({ authorizer });
		const refused = startTop(address, "--token", "other");
		const { code, err, out } = await refused.ended;
		expect([code, out.endsWith(left)]).toEqual([5, true]);
		expect(err).toContain("not allowed");
		const run = startTop(address, "--token", "operator");
		await run.prints("CONTROLLER");
		authorizer.revoke("operator");
		const ended = await run.ended;
		expect([ended.code, ended.out.endsWith(left)]).toEqual([5, true]);
	});

	it("explains servers that are older, and intervals that none accepts", async () => {
		await using cinema = await startCinema();
		const older = await runPlinth(["top", "--server", cinema.address]);
		expect(older).toMatchObject({ code: 1, out: "" });
		expect(older.err).toContain("it is older than this command, which needs its ServerService");
		for (const interval of ["0s", "999ms", "61s", "8760h"]) {
			const { code, err } = await runPlinth(["top", "--interval", interval]);
			expect([code, err]).toEqual([2, "plinth: --interval must be from 1s to 60s\n"]);
		}
	});

	it("is completed, and has a help text", async () => {
		const complete = async (...words: string[]) =>
			(await runPlinth(["__complete", "--", ...words])).out.split("\n");
		const help = await runPlinth(["top", "--help"]);
		expect(help.out).toContain("Controllers that fail or do not run come first");
		expect(await complete("to")).toContain("top");
		expect(await complete("top", "-o", "")).toEqual(
			expect.arrayContaining(["table", "yaml", "json"]),
		);
		expect(await complete("top", "--")).toEqual(expect.arrayContaining(["--interval", "--once"]));
	});
});

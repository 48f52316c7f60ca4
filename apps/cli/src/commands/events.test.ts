import { createServer as createHttp2Server } from "node:http2";
import type { AddressInfo } from "node:net";
import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { defineController } from "@plinth/controller";
import { EventService } from "@plinth/proto/gen/plinth/event/v1/event_service_pb.js";
import { idOf, resourceOf } from "@plinth/resource";
import { silentLogger } from "@plinth/runtime";
import { createServer, defineModule } from "@plinth/server";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { FilmSchema } from "../../testdata/gen/cinema/v1/cinema_pb.ts";
import { Film } from "../cinema.fixture.ts";
import { runPlinth, startPlinth } from "../run-plinth.fixture.ts";

/** Tells of each film that it was printed; no copy of `alien` can be made. */
const projectionist = defineController({
	name: "projectionist",
	manages: Film,
	reconcile: async (context, { id }) => {
		if (id.name === "alien") {
			throw new Error("the reel is torn");
		}
		context.event({ reason: "Printed", message: `${id.name} was printed` });
	},
});

async function start() {
	const server = createServer({
		storage: { kind: "memory" },
		listen: { host: "127.0.0.1", port: 0 },
		modules: [defineModule({ name: "cinema", types: [Film], controllers: [projectionist] })],
		logger: silentLogger,
	});
	await server.start();
	onTestFinished(() => server.stop());
	const put = (name: string, finalizers = "") =>
		server.client.write({
			resource: {
				...resourceOf(Film, { id: idOf(Film, name), data: create(FilmSchema, { title: name }) }),
				metadata: { finalizers },
			},
		});
	const at = (args: readonly string[]) => [...args, "--server", server.address];
	const run = (...args: readonly string[]) => runPlinth(at(args));
	const runAt = (width: number, ...args: readonly string[]) => runPlinth(at(args), { width });
	/** Runs a command until what it prints contains the text. */
	const runUntil = async (text: string, ...args: readonly string[]) => {
		return vi.waitFor(async () => {
			const result = await run(...args);
			expect(result.out).toContain(text);
			return result;
		}, 300_000);
	};
	const { address } = server;
	return {
		address,
		put,
		run,
		runAt,
		runUntil,
		follow: (...args: string[]) => startPlinth(at(args)),
	};
}

/** A server with nothing but this service. */
async function serve(service: Partial<ServiceImpl<typeof EventService>>): Promise<string> {
	const server = createHttp2Server(
		connectNodeAdapter({ routes: (router) => router.service(EventService, service) }),
	);
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	onTestFinished(() => void server.close());
	return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A table, with ages and counts, which depend on the time, as `*`. */
const timeless = (text: string) => text.replaceAll(/^( *)\d+\w* +\d+ +/gm, "$1* ");

describe("plinth events", () => {
	it("prints what controllers tell, and what fails, the newest last", async () => {
		const { put, run, runUntil } = await start();
		expect(await run("events")).toEqual({ code: 0, out: "", err: "no events\n" });
		await put("solaris");
		await runUntil("Printed", "events");
		await put("alien");
		await runUntil("ReconcileFailed", "events");
		const { out, err } = await run("events");
		expect(err).toBe("");
		expect(timeless(out)).toBe(
			`LAST  COUNT  REASON           RESOURCE      BY             MESSAGE
* Printed          Film/solaris  projectionist  solaris was printed
* ReconcileFailed  Film/alien    projectionist  the reel is torn
`,
		);
		expect((await run("events", "film", "solaris")).out).not.toContain("alien");
		expect((await run("events", "film", "--warnings")).out).not.toContain("solaris");
		for (const args of [["events"], ["events", "film"]]) {
			expect(await run(...args, "-n", "elsewhere")).toEqual({
				code: 0,
				out: "",
				err: "plinth: warning: namespace not found: elsewhere\nno events\n",
			});
		}
		const wide = await run("events", "-A", "-o", "wide");
		expect(wide.out).toMatch(/^PARTITION +NAMESPACE +LAST +FIRST +COUNT +REASON/);
		expect(wide.out).toMatch(/^default +default +\d/m);
		const [event] = JSON.parse((await run("events", "film/solaris", "-o", "json")).out);
		expect(event).toMatchObject({ reason: "Printed", source: "projectionist", count: "1" });
		expect((await run("events", "film/solaris", "-o", "name")).out).toBe(
			"cinema.v1.Film default/default/solaris: Printed\n",
		);
	});

	it("prints events as they occur, also those of resources that are gone", async () => {
		const { put, run, follow } = await start();
		const following = follow("events", "--watch");
		await following.prints("MESSAGE");
		await put("solaris", "archive");
		await following.prints("solaris was printed");
		await run("delete", "film", "solaris");
		await following.prints("it waits for archive");
		following.interrupt();
		expect((await following.ended).code).toBe(130);
		expect((await run("events", "film", "solaris")).out).toContain("DeletionWaits");
	});

	it("keeps messages readable at 80 columns, also if all columns are requested", async () => {
		const { put, runAt, runUntil } = await start();
		await put("solaris");
		await runUntil("Printed", "events");
		const wide = await runAt(200, "events", "-A", "-o", "wide");
		expect(wide.out).toMatch(
			/^PARTITION +NAMESPACE +LAST +FIRST +COUNT +REASON +RESOURCE +BY +SERVER +MESSAGE\n/,
		);
		const narrow = await runAt(60, "events", "-A", "-o", "wide");
		expect(narrow.out).toMatch(/^NAMESPACE +LAST +REASON +RESOURCE +MESSAGE\n/);
		expect(narrow.out).toContain("solaris was printed\n");
		expect((await runAt(80, "events")).out).toMatch(
			/^LAST +COUNT +REASON +RESOURCE +BY +MESSAGE\n/,
		);
	});

	it("fails for a resource that does not exist, unless events of it are kept", async () => {
		const { put, run, runUntil } = await start();
		const missing = {
			code: 3,
			out: "",
			err: "plinth: cinema.v1.Film default/default/nope not found\n",
		};
		for (const flags of [[], ["-o", "json"], ["--warnings"]]) {
			expect(await run("events", "film", "nope", ...flags)).toEqual(missing);
		}
		expect((await run("events", "film/nope", "-n", "late")).err).toBe(
			"plinth: cinema.v1.Film default/late/nope: namespace not found: late\n",
		);
		await put("solaris");
		await runUntil("Printed", "events");
		expect(await run("events", "film", "solaris", "--warnings")).toEqual({
			code: 0,
			out: "",
			err: "no events\n",
		});
		await run("delete", "film", "solaris");
		expect(await run("events", "film", "solaris")).toMatchObject({ code: 0, err: "" });
		expect((await run("events", "film", "solaris", "--warnings")).err).toBe("no events\n");
	});

	it("says what helps if there are more events than the maximum", async () => {
		const address = await serve({
			listEvents: () => ({
				events: [{ reason: "Printed", resource: idOf(Film, "solaris") }],
				hasMore: true,
			}),
		});
		const warningFor = async (...args: readonly string[]) => {
			const flags = ["--limit", "10000", "--server", address];
			return (await runPlinth(["events", ...args, ...flags])).err;
		};
		const maximum = "plinth: warning: older events are not shown: 10000 is the maximum of --limit";
		expect(await warningFor()).toBe(
			`${maximum}; to see others, name a type or a resource, or set --warnings\n`,
		);
		expect(await warningFor("--warnings")).toBe(
			`${maximum}; to see others, name a type or a resource\n`,
		);
	});

	it("says how many it leaves out, and refuses a limit that is none", async () => {
		const { put, run, runUntil } = await start();
		for (const name of ["a", "b", "c"]) {
			await put(name);
			await runUntil(`Film/${name}`, "events");
		}
		const { out, err } = await run("events", "--limit", "2");
		expect(out).not.toContain("Film/a");
		expect(out).toContain("Film/c");
		expect(err).toBe("plinth: warning: older events are not shown: raise --limit\n");
		for (const limit of ["0", "-1", "1.5", "many", "10001"]) {
			const { code, err: problem } = await run("events", "--limit", limit);
			expect(code).toBe(2);
			expect(problem).toContain("must be a whole number from 1 to 10000");
		}
	});

	it("names the controllers to a shell that completes the name of one", async () => {
		const { address } = await start();
		const env = { PLINTH_SERVER: address };
		const { out } = await runPlinth(["__complete", "--", "controllers", "pro"], { env });
		expect(out).toBe("projectionist\n");
	});

	it("shows the events of a resource with its description", async () => {
		const { put, runUntil } = await start();
		await put("solaris");
		const { out } = await runUntil("Printed", "describe", "film", "solaris");
		expect(timeless(out)).toContain(`events:
  LAST  COUNT  REASON   BY             MESSAGE
  * Printed  projectionist  solaris was printed
`);
	});
});

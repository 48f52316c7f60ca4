import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { type Controller, defineController } from "@plinth/controller";
import { ResourceService } from "@plinth/proto";
import { idOf, resourceOf } from "@plinth/resource";
import { PolicyAuthorizer } from "@plinth/resource-service";
import { silentLogger } from "@plinth/runtime";
import { createServer, defineModule } from "@plinth/server";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { FilmSchema } from "../../testdata/gen/cinema/v1/cinema_pb.ts";
import { Film } from "../cinema.fixture.ts";
import { startCinema } from "../cinema-server.fixture.ts";
import { type RunOptions, runPlinth } from "../run-plinth.fixture.ts";

/** Reports each film as shown. */
const projectionist = defineController({
	name: "projectionist",
	manages: Film,
	reconcile: async (context, { id }) => {
		const film = context.cache.get(Film, id);
		if (film !== undefined) {
			await context.writeStatusIfChanged(film.resource, {
				key: "projectionist",
				conditions: [{ type: "Shown", state: 1, reason: "Ready", message: "in hall 1" }],
			});
		}
	},
});

/** A server whose callers are `ann` and `bob`, who may do everything, and `eve`, who may only write. */
async function start({
	controllers = [],
	memoryLimitBytes,
}: {
	controllers?: readonly Controller[];
	memoryLimitBytes?: number;
} = {}) {
	const authorizer = new PolicyAuthorizer();
	for (const subject of ["ann", "bob"]) {
		authorizer.grant(subject, { subject, rules: [{ operations: ["*"], type: "*" }] });
	}
	authorizer.grant("eve", { subject: "eve", rules: [{ operations: ["operator:write"] }] });
	const server = createServer({
		storage: { kind: "memory" },
		listen: { host: "127.0.0.1", port: 0 },
		modules: [defineModule({ name: "cinema", types: [Film], controllers })],
		authorizer,
		logger: silentLogger,
		...(memoryLimitBytes !== undefined && { memoryLimitBytes }),
	});
	await server.start();
	onTestFinished(() => server.stop());
	const client = createClient(ResourceService, createGrpcTransport({ baseUrl: server.address }));
	const as = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
	const put = (token: string, film: MessageInitShape<typeof FilmSchema>, finalizers = "") =>
		client.write(
			{
				resource: {
					...resourceOf(Film, { id: idOf(Film, "alien"), data: create(FilmSchema, film) }),
					metadata: finalizers === "" ? {} : { finalizers },
				},
			},
			as(token),
		);
	const runAs = (token: string, args: readonly string[], options: RunOptions = {}) =>
		runPlinth(["history", ...args, "--server", server.address, "--token", token], options);
	const run = (...args: readonly string[]) => runAs("ann", args);
	return { server, client, put, as, run, runAs };
}

/** The text with what depends on the time, versions and generations as letters. */
const timeless = (text: string) =>
	text
		.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "TIME")
		.replaceAll(/\d+s ago/g, "AGO")
		.replaceAll(/version \d+/g, "version V")
		.replaceAll(/generation \w{26}/g, "generation G")
		.replaceAll(/[0-9A-HJKMNP-TV-Z]{26}/g, "ULID");

describe("plinth history", () => {
	it("prints what changed, when and by whom, the newest first", async () => {
		const { put, run, client, as } = await start();
		await put("ann", { title: "Alien", tags: ["horror"] });
		await put("bob", { title: "Aliens", tags: ["war", "horror"] });
		await client.delete({ id: idOf(Film, "alien") }, as("ann"));
		await put("bob", { title: "Alien 3" }, "archive");
		await client.delete({ id: idOf(Film, "alien") }, as("ann"));
		const { code, out, err } = await run("film", "alien");
		expect({ code, err }).toEqual({ code: 0, err: "" });
		expect(timeless(out)).toBe(`complete since the resource was created

version V: updated AGO by ann
  TIME, generation G
  + metadata.deletionTimestamp: TIME

version V: created AGO by bob
  TIME, generation G
  + metadata.finalizers: archive
  + data.title: Alien 3
  + data.rating: 5

version V: deleted AGO by ann
  TIME, generation G

version V: updated AGO by bob
  TIME, generation G
  ~ data.title: Alien → Aliens
  + data.tags[0]: war

version V: created AGO by ann
  TIME, generation G
  + data.title: Alien
  + data.tags: ["horror"]
  + data.rating: 5
`);
	});

	it("names the controller that has written, and leaves out the time of its status", async () => {
		const { put, run } = await start({ controllers: [projectionist] });
		await put("ann", { title: "Alien" });
		const { out } = await vi.waitFor(async () => {
			const result = await run("film/alien");
			expect(result.out).toContain("projectionist");
			return result;
		}, 300_000);
		expect(timeless(out)).toMatch(
			/^complete since the resource was created\n\nversion V: updated AGO by projectionist\n/,
		);
		expect(out).toContain('+ status.projectionist.conditions: [{"type":"Shown"');
		expect(out).not.toContain("updated_at");
		expect(out).not.toContain("observed_generation");
		const { out: wide } = await run("film/alien", "-o", "wide");
		expect(wide).toContain("+ status.projectionist.updated_at: ");
	});

	it("shows the newest versions up to the limit, each with what it changed", async () => {
		const { put, run } = await start();
		for (const title of ["1", "2", "3"]) {
			await put("ann", { title: `Alien ${title}` });
		}
		const { out, err } = await run("film", "alien", "--limit", "2");
		expect(timeless(out)).toMatch(/^complete since TIME \(AGO\); older versions are not shown\n/);
		expect(out).toContain("~ data.title: Alien 2 → Alien 3\n");
		expect(out).toContain("~ data.title: Alien 1 → Alien 2\n");
		expect(out).not.toContain("created");
		expect(err).toBe("plinth: warning: older versions are not shown: raise --limit\n");
		expect((await run("film", "alien", "--limit", "3")).err).toBe("");
		for (const limit of ["0", "-1", "1.5", "many", "1001"]) {
			const refused = await run("film", "alien", "--limit", limit);
			expect(refused.code).toBe(2);
			expect(refused.err).toContain(
				`invalid value "${limit}" for --limit <number>: must be a whole number from 1 to 1000`,
			);
		}
	});

	it("goes on before a version, with what each has changed", async () => {
		const { put, run } = await start();
		for (const title of ["1", "2", "3"]) {
			await put("ann", { title: `Alien ${title}` });
		}
		const versionsIn = (out: string) => [...out.matchAll(/^version (\d+)/gm)].map(([, it]) => it);
		const all = versionsIn((await run("film", "alien")).out);
		const { out } = await run("film", "alien", "--before", all[0] ?? "");
		expect(versionsIn(out)).toEqual(all.slice(1));
		expect(out).toMatch(/^complete since the resource was created\n/);
		expect(out).toContain("~ data.title: Alien 1 → Alien 2\n");
		expect(await run("film", "alien", "--before", all[2] ?? "")).toEqual({
			code: 0,
			out: "",
			err: `no versions before ${all[2]} are known\n`,
		});
		expect(await run("film", "alien", "--before", "nope")).toEqual({
			code: 1,
			out: "",
			err: "plinth: version nope is not known any more: leave out --before\n",
		});
	});

	it("says how to go on if there are more versions than the maximum", async () => {
		const { put, run } = await start();
		for (let count = 0; count < 1_002; count++) {
			await put("ann", { title: `Alien ${count}` });
		}
		const { out, err } = await run("film", "alien", "--limit", "1000");
		const oldest = [...out.matchAll(/^version (\d+)/gm)].at(-1)?.[1];
		expect(err).toBe(
			`plinth: warning: older versions are not shown: add --before ${oldest} to print them\n`,
		);
		const older = await run("film", "alien", "--limit", "1000", "--before", oldest ?? "");
		expect(older.out.match(/^version/gm)).toHaveLength(2);
		expect(older.err).toBe("");
	});

	it("says since when it is complete if the server has forgotten versions", async () => {
		const { put, run } = await start({ memoryLimitBytes: 100 * 2 ** 20 });
		const novel = "x".repeat(900_000);
		for (let part = 0; part < 21; part++) {
			await put("bob", { title: `Part ${part}`, story: { case: "novel", value: novel } });
		}
		const { out } = await run("film", "alien", "--limit", "1000", "-o", "wide");
		expect(timeless(out)).toMatch(
			/^complete since TIME \(AGO, version V\); earlier changes are not known\n/,
		);
		expect(out).toContain("~ data.title: Part 19 → Part 20\n");
		expect(out).not.toContain("created");
		expect(timeless(out).split("\n\n").at(-1)).toBe(
			"version V: written AGO by an unknown writer\n  TIME, generation G, uid ULID\n",
		);
	});

	it("prints documents for programs", async () => {
		const { put, run } = await start();
		await put("ann", { title: "Alien" });
		await put("bob", { title: "Aliens" });
		const { out } = await run("film", "alien", "-o", "json");
		expect(JSON.parse(out)).toMatchObject({
			includes_creation: true,
			has_more: false,
			versions: [
				{
					change: "updated",
					written_by: "bob",
					resource: { name: "alien", data: { title: "Aliens" } },
					changes: [{ field: "data.title", before: "Alien", after: "Aliens" }],
				},
				{ change: "created", written_by: "ann" },
			],
		});
		const { out: yaml } = await run("film", "alien", "-o", "yaml");
		expect(yaml).toContain(
			"      - field: data.title\n        before: Alien\n        after: Aliens\n",
		);
		expect((await run("film", "alien", "-o", "name")).code).toBe(2);
	});

	it("cuts long values to the terminal, and shows where they differ", async () => {
		const { put, runAs } = await start();
		const text = "In space no one can hear you scream. ".repeat(10);
		await put("ann", { title: `${text}One`, tags: Array.from({ length: 5 }, () => text) });
		await put("ann", {
			title: `${text}Two`,
			cast: [{ actor: "Sigourney Weaver", name: "Ripley" }],
		});
		for (const width of [80, 200]) {
			const { out } = await runAs("ann", ["film", "alien"], { width });
			expect(Math.max(...out.split("\n").map((line) => line.length))).toBeLessThanOrEqual(width);
			expect(out).toContain("~ data.title: …scream. One → …scream. Two\n");
			expect(out).toContain('+ data.cast: [{"actor":"Sigourney Weaver","name":"Ripley"}]\n');
		}
		const { out } = await runAs("ann", ["film", "alien", "-o", "wide"], { width: 80 });
		expect(out).toContain(`~ data.title: ${text}One → ${text}Two\n`);
	});

	it("lets no text of a resource control the terminal", async () => {
		const { put, run } = await start();
		const bell = "\u009b31m\u0007\n";
		await put("ann", { title: `a${bell}`, tags: [bell], prizes: { [bell]: 1 } });
		const { out } = await run("film", "alien");
		expect(out).toContain("data.prizes");
		// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters
		expect(out).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
	});

	it("shows some of many changes, and colors them in a terminal", async () => {
		const { put, runAs } = await start();
		const prizes = Array.from({ length: 30 }, (_, at) => [`prize-${at}`, at] as const);
		await put("ann", { title: "Alien", prizes: Object.fromEntries(prizes) });
		const { out } = await runAs("ann", ["film", "alien"], { color: true });
		expect(out).toContain("\x1b[32m  + data.title: Alien\x1b[39m\n");
		expect(out).toContain("  … and 12 more changes: -o wide shows them\n");
		expect((await runAs("ann", ["film", "alien", "-o", "wide"])).out).toContain("prize-29");
	});

	it("says what is wrong: no rights, no such resource or type, an older server", async () => {
		const { put, run, runAs } = await start();
		await put("ann", { title: "Alien" });
		const refused = await runAs("eve", ["film", "alien"]);
		expect(refused).toMatchObject({ code: 5, out: "" });
		expect(refused.err).toContain("eve lacks operator:read on cinema.v1.Film");
		expect(await run("film", "brazil")).toEqual({
			code: 3,
			out: "",
			err: "plinth: cinema.v1.Film default/default/brazil not found, and the server knows no earlier version of it\n",
		});
		expect((await run("film", "alien", "-n", "nowhere")).err).toContain(
			"not found: namespace not found: nowhere",
		);
		expect((await run("flim", "alien")).code).toBe(2);
		expect((await run("film")).err).toContain("name the resource: film NAME");
		await using older = await startCinema();
		const { code, err } = await runPlinth(["history", "film", "alien", "--server", older.address]);
		expect(code).toBe(1);
		expect(err).toContain("the server has no histories: it is older than this command");
	});

	it("completes the names of resources", async () => {
		const { put, server } = await start();
		await put("ann", { title: "Alien" });
		const env = { PLINTH_SERVER: server.address, PLINTH_TOKEN: "ann" };
		const { out } = await runPlinth(["__complete", "--", "history", "film", "al"], { env });
		expect(out).toBe("alien\n");
	});
});

import { create } from "@bufbuild/protobuf";
import { decode, idOf, resourceOf, typeOf } from "@plinth/resource";
import { systemClock } from "@plinth/runtime";
import { createServer, defineModule } from "@plinth/server";
import { describe, expect, it, onTestFinished } from "vitest";
import { FilmSchema, ScreeningSchema } from "../../testdata/gen/cinema/v1/cinema_pb.ts";
import { Film, Screening } from "../cinema.fixture.ts";
import { type CinemaServer, startCinema } from "../cinema-server.fixture.ts";
import { type RunOptions, startPlinth } from "../run-plinth.fixture.ts";

/** A server whose writes the test can hold up: `beforeWrite` is called with the number of the write, from 1. */
async function start(beforeWrite: (write: number) => Promise<void> | void = () => {}) {
	let writes = 0;
	const server = await startCinema({
		beforeWrite: async () => {
			writes += 1;
			await beforeWrite(writes);
		},
	});
	onTestFinished(() => server[Symbol.asyncDispose]());
	return server;
}

/** A server that checks references. */
async function startWithReferences() {
	const server = createServer({
		storage: { kind: "memory" },
		listen: { host: "127.0.0.1", port: 0 },
		modules: [defineModule({ name: "cinema", types: [Film, Screening] })],
	});
	await server.start();
	onTestFinished(() => server.stop());
	return server;
}

function startApply(
	{ address }: { readonly address: string },
	documents: readonly string[],
	options: RunOptions = {},
	...flags: readonly string[]
) {
	const stdin = documents.join("---\n");
	return startPlinth(["apply", "-f", "-", "--server", address, ...flags], { stdin, ...options });
}

const apply = (...args: Parameters<typeof startApply>) => startApply(...args).ended;

const names = (count: number) => Array.from({ length: count }, (_, at) => `film-${at}`);
const film = (name: string, title = name) => `type: Film\nname: ${name}\ndata: {title: ${title}}\n`;
const films = (count: number) => names(count).map((name) => film(name));
const line = (name: string, outcome = "created") => `cinema.v1.Film/${name} ${outcome}\n`;
const screening = (name: string, ...fields: readonly string[]) =>
	`type: Screening\nname: ${name}\ndata: {${fields.join(", ")}}\n`;

/** The names of the stored films. */
async function storedFilms({ client }: CinemaServer): Promise<readonly string[]> {
	const { resources } = await client.list({
		type: typeOf(Film.type),
		tenancy: { partition: "default", namespace: "default" },
		pageSize: 1_000,
	});
	return resources.map(({ id }) => id?.name ?? "").sort();
}

describe("apply of many documents", () => {
	it("writes 16 at a time, and prints them in the order of the documents", async () => {
		let atATime = 0;
		const full = Promise.withResolvers<void>();
		const server = await start(async (write) => {
			atATime += 1;
			if (write <= 16) {
				// Were there fewer at a time, this would wait forever.
				if (write === 16) {
					full.resolve();
				}
				await full.promise;
				expect(atATime).toBe(16);
				// The later of them are done first.
				for (let turn = 0; turn < 2 * (16 - write); turn += 1) {
					await new Promise((resolve) => setImmediate(resolve));
				}
			}
			atATime -= 1;
		});
		const all = names(100);
		expect(await apply(server, films(100))).toEqual({
			code: 0,
			out: all.map((name) => line(name)).join(""),
			err: "",
		});
		expect(await storedFilms(server)).toEqual([...all].sort());
		const again = await apply(server, films(100), {}, "--diff");
		expect(again.out).toBe(all.map((name) => line(name, "unchanged")).join(""));
	});

	it("writes each document after those that it depends on, in whatever order they are", async () => {
		const server = await startWithReferences();
		const inShop = (document: string) => `namespace: shop\n${document}`;
		const documents = [
			inShop(screening("second", "film: {name: alien}", "needs: {name: first}")),
			inShop(`owner: {type: Film, name: alien, namespace: shop}\n${film("aliens")}`),
			inShop(screening("first", "film: {name: alien}")),
			inShop(film("alien")),
			"type: Namespace\nname: shop\n",
		].map((document) =>
			document.replaceAll(/\{name: (\w+)\}/g, "{name: $1, tenancy: {namespace: shop}}"),
		);
		expect(await apply(server, documents)).toEqual({
			code: 0,
			out: [
				"cinema.v1.Screening/second created\n",
				line("aliens"),
				"cinema.v1.Screening/first created\n",
				line("alien"),
				"tenancy.v1.Namespace/shop created\n",
			].join(""),
			err: "",
		});
	});

	it("applies two documents of one resource one after the other", async () => {
		const server = await start();
		const documents = [...films(20), film("film-3", "Again"), film("film-3", "Again")];
		const { code, out } = await apply(server, documents);
		expect(code).toBe(0);
		expect(out.split("\n").slice(-3)).toEqual([
			"cinema.v1.Film/film-3 updated",
			"cinema.v1.Film/film-3 unchanged",
			"",
		]);
		const { resource } = await server.client.read({ id: idOf(Film, "film-3") });
		expect(resource && decode(Film, resource).data.title).toBe("Again");
	});

	it("reports a cycle of references that can't be written, and writes all else", async () => {
		const server = await startWithReferences();
		const { code, out, err } = await apply(server, [
			screening("a", "needs: {name: b}"),
			film("alien"),
			screening("b", "needs: {name: a}"),
			screening("c", "film: {name: alien}"),
		]);
		expect(code).toBe(4);
		expect(out).toBe(`${line("alien")}cinema.v1.Screening/c created\n`);
		expect(err.split("\n")).toEqual([
			expect.stringMatching(
				/^standard input:1:1 \(document 1\): cinema.v1.Screening .*b.* does not exist/,
			),
			expect.stringMatching(
				/^standard input:9:1 \(document 3\): cinema.v1.Screening .*a.* does not exist/,
			),
			"",
		]);
	});

	it("tries what was refused again when the others are written, so that a cycle with a stored resource is closed", async () => {
		const server = await startWithReferences();
		const data = create(ScreeningSchema, {});
		await server.client.write({
			resource: resourceOf(Screening, { id: idOf(Screening, "a"), data }),
		});
		expect(
			await apply(server, [screening("a", "needs: {name: b}"), screening("b", "needs: {name: a}")]),
		).toEqual({
			code: 0,
			out: "cinema.v1.Screening/a updated\ncinema.v1.Screening/b created\n",
			err: "",
		});
		const { resource } = await server.client.read({ id: idOf(Screening, "a") });
		expect(resource && decode(Screening, resource).data.needs?.name).toBe("b");
	});

	it("does not try a refused document again over a later one of its resource", async () => {
		const server = await startWithReferences();
		const { code, out, err } = await apply(server, [
			film("alien"),
			screening("a", "needs: {name: b}"),
			screening("a", "film: {name: alien}"),
			// With this one, the first document of the resource could be written.
			screening("b", "needs: {name: a}"),
		]);
		expect({ code, out }).toEqual({
			code: 4,
			out: `${line("alien")}cinema.v1.Screening/a created\ncinema.v1.Screening/b created\n`,
		});
		expect(err).toMatch(/^standard input:5:1 \(document 2\): .*b.* does not exist[^\n]*\n$/);
		const { resource } = await server.client.read({ id: idOf(Screening, "a") });
		expect(resource && decode(Screening, resource).data.film?.name).toBe("alien");
	});

	it("reports one refused document among many in its place", async () => {
		const server = await start();
		const documents = films(60).with(30, "type: Film\nname: bad\n");
		const { code, out, err } = await apply(server, documents);
		expect(code).toBe(1);
		expect(out).toBe(
			names(60)
				.filter((name) => name !== "film-30")
				.map((name) => line(name))
				.join(""),
		);
		expect(err).toBe("standard input:121:1 (document 31): resource.data.title is required\n");
	});

	it("reports one conflict among many, and changes nothing of that resource", async () => {
		const server = await start();
		const data = create(FilmSchema, { title: "Kept" });
		await server.client.write({ resource: resourceOf(Film, { id: idOf(Film, "film-5"), data }) });
		const documents = films(40).with(
			5,
			`generation: 01JZ8M4Q9W3T5R7Y1N2B6C8D0F\n${film("film-5")}`,
		);
		const { code, out, err } = await apply(server, documents);
		expect(code).toBe(4);
		expect(out.match(/ created\n/g)).toHaveLength(39);
		expect(err).toContain("(document 6): cinema.v1.Film default/default/film-5: ");
		expect(err).toContain("has changed since the document was read");
		const { resource } = await server.client.read({ id: idOf(Film, "film-5") });
		expect(resource && decode(Film, resource).data.title).toBe("Kept");
	});

	it("ends with one error and the count when the server dies, and prints only what was written", async () => {
		const server: CinemaServer = await start(async (write) => {
			if (write === 40) {
				await server.stop();
			}
			// Those behind it don't get through either.
			if (write > 40) {
				await new Promise(() => {});
			}
		});
		const { code, out, err } = await apply(server, films(200));
		expect(code).toBe(6);
		const printed = [...out.matchAll(/^cinema\.v1\.Film\/(.*) created$/gm)].map(([, name]) => name);
		expect(err).toMatch(
			new RegExp(
				`^standard input:\\d+:1 \\(document \\d+\\): [^\n]*\nplinth: the server was lost: ${printed.length} of 200 documents were applied, and \\d+ more may have been\n$`,
			),
		);
		expect(printed.length).toBeGreaterThanOrEqual(20);
		expect(printed.length).toBeLessThan(60);
		expect(await storedFilms(server)).toEqual(expect.arrayContaining(printed));
	});

	it("says on an interrupt how many were applied, writes in progress included", async () => {
		const reached = Promise.withResolvers<void>();
		const held = Promise.withResolvers<void>();
		const server = await start(async (write) => {
			if (write >= 40) {
				reached.resolve();
				await held.promise;
			}
		});
		const run = startApply(server, films(200));
		await reached.promise;
		run.interrupt();
		held.resolve();
		const { code, out, err } = await run.ended;
		expect(code).toBe(130);
		const stored = await storedFilms(server);
		expect(stored.length).toBeGreaterThanOrEqual(40);
		expect(stored.length).toBeLessThan(60);
		expect(err).toBe(`plinth: interrupted: ${stored.length} of 200 documents were applied\n`);
		expect([...out.matchAll(/Film\/(.*) created/g)].map(([, name]) => name).sort()).toEqual(stored);
	});

	it("does not wait long for writes in progress after an interrupt, and counts them apart", async () => {
		const reached = Promise.withResolvers<void>();
		const server = await start(async (write) => {
			if (write > 4) {
				if (write === 5 + 15) {
					reached.resolve();
				}
				await new Promise(() => {});
			}
		});
		const timers: (() => void)[] = [];
		const clock = {
			...systemClock,
			now: () => systemClock.now(),
			monotonic: () => systemClock.monotonic(),
			setTimer(_delayMs: number, callback: () => void) {
				timers.push(callback);
				return { cancel: () => {} };
			},
		};
		const run = startApply(server, films(200), { clock });
		await reached.promise;
		await run.prints("film-3 created");
		run.interrupt();
		for (const fire of timers) {
			fire();
		}
		const { code, err } = await run.ended;
		expect(code).toBe(130);
		expect(err).toBe(
			"plinth: interrupted: 4 of 200 documents were applied, and 16 more may have been\n",
		);
	});
});

describe("the progress of apply", () => {
	/** A second passes at each look. */
	const clock = () => {
		let nowMs = 0;
		return {
			now: () => 0,
			monotonic: () => {
				nowMs += 1_000;
				return nowMs;
			},
			setTimer: systemClock.setTimer.bind(systemClock),
		};
	};

	it("is shown in a terminal, and removed before other output", async () => {
		const server = await start();
		const { out } = await apply(server, films(3), { clock: clock(), width: 80 });
		const lines = out.split("\n");
		expect(lines).toHaveLength(4);
		for (const [at, text] of lines.entries()) {
			const shown = /^(?:\d of 3 documents\r {16}\r)*(.*)$/.exec(text)?.[1];
			expect(`${shown}\n`).toBe(at < 3 ? line(`film-${at}`) : "\n");
		}
		expect(out).toContain("3 of 3 documents\r");
	});

	it("is not shown in a pipe", async () => {
		const server = await start();
		const { out, err } = await apply(server, films(3), { clock: clock() });
		expect({ out, err }).toEqual({
			out: names(3)
				.map((name) => line(name))
				.join(""),
			err: "",
		});
	});
});

import { create } from "@bufbuild/protobuf";
import { Condition_State, OriginSchema, StatusSchema } from "@plinth/proto";
import { idOf, newUlid, resourceOf } from "@plinth/resource";
import { systemRuntime } from "@plinth/runtime";
import { describe, expect, it } from "vitest";
import { FilmSchema } from "../../testdata/gen/cinema/v1/cinema_pb.ts";
import { Film } from "../cinema.fixture.ts";
import { type CinemaOptions, startCinema } from "../cinema-server.fixture.ts";
import { exitCodes } from "../exit-codes.ts";
import { runPlinth, startPlinth } from "../run-plinth.fixture.ts";

const film = (name: string, title: string) =>
	resourceOf(Film, { id: idOf(Film, name), data: create(FilmSchema, { title }) });

/** A copy of a film of another region. */
function copyOf(name: string, title: string, region: string) {
	const { id, ...original } = film(name, title);
	const generation = newUlid(systemRuntime);
	const status = create(StatusSchema, {
		observedGeneration: generation,
		conditions: [{ type: "Shown", state: Condition_State.TRUE }],
	});
	return {
		...original,
		generation,
		...(id && { id: { ...id, region } }),
		status: { critic: status },
		origin: create(OriginSchema, { region, uid: newUlid(systemRuntime), version: "7" }),
	};
}

/** A server of the region eu with a film, a copy of another of its name, and one of another region. */
async function start(options: CinemaOptions = {}) {
	const server = await startCinema({ region: "eu", ...options });
	await server.client.write({ resource: film("alien", "Alien") });
	await server.store(copyOf("alien", "Aliens", "us"));
	await server.store(copyOf("brazil", "Brazil", "asia"));
	const run = (...args: readonly string[]) =>
		runPlinth(args, { env: { PLINTH_SERVER: server.address } });
	return { server, run, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

/** The columns of a table that a test is about. */
const cells = (out: string, count: number) =>
	out
		.trimEnd()
		.split("\n")
		.map((line) => line.split(/ {2,}/).slice(0, count).join(" "));

describe("get --region", () => {
	it("prints copies only if their region is requested", async () => {
		await using cinema = await start();
		const titles = async (...flags: readonly string[]) => {
			const { out, err } = await cinema.run("get", "Film", "-o", "json", ...flags);
			expect(err).toBe("");
			return JSON.parse(out).map(
				({ region = "here", data }: { region?: string; data: { title: string } }) =>
					`${region} ${data.title}`,
			);
		};
		expect(await titles()).toEqual(["here Alien"]);
		expect(await titles("--region", "us")).toEqual(["us Aliens"]);
		expect(await titles("--region", "eu")).toEqual(["here Alien"]);
		expect(await titles("--region", "africa")).toEqual([]);
		expect(await titles("--region", "*")).toEqual(["here Alien", "asia Brazil", "us Aliens"]);
		const one = await cinema.run("get", "Film", "alien", "--region", "us", "-o", "yaml");
		expect(one.out).toContain("\nregion: us\n");
		expect(one.out).toContain("title: Aliens");
		const both = await cinema.run("get", "Film", "alien", "--region", "*", "-o", "json");
		expect(JSON.parse(both.out).map(({ region }: { region?: string }) => region)).toEqual([
			...[undefined, "us"],
		]);
		expect((await cinema.run("list", "Film", "--region", "us", "-o", "name")).out).toBe(
			"cinema.v1.Film/alien\n",
		);
	});

	it("has a column for regions if there may be several, or in a wide table", async () => {
		await using cinema = await start();
		const all = await cinema.run("get", "Film", "--region", "*");
		expect(cells(all.out, 2)).toEqual(["REGION NAME", " alien", "asia brazil", "us alien"]);
		const wide = await cinema.run("get", "Film", "--region", "us", "-o", "wide");
		expect(cells(wide.out, 2)).toEqual(["REGION NAME", "us alien"]);
		const plain = await cinema.run("get", "Film", "--region", "us");
		expect(cells(plain.out, 1)).toEqual(["NAME", "alien"]);
		const local = await cinema.run("get", "Film", "-o", "wide");
		expect(cells(local.out, 1)).toEqual(["NAME", "alien"]);
	});

	it("reports what is not there, with the region, and a malformed region", async () => {
		await using cinema = await start();
		expect(await cinema.run("get", "Film", "brazil", "--region", "us")).toMatchObject({
			code: exitCodes.notFound,
			err: "plinth: cinema.v1.Film default/default/brazil (us) not found\n",
		});
		expect(await cinema.run("get", "Film", "metropolis", "--region", "*")).toMatchObject({
			code: exitCodes.notFound,
			err: "plinth: cinema.v1.Film default/default/metropolis not found in any region\n",
		});
		for (const command of [
			["get", "Film"],
			["list", "Film"],
			["watch", "Film"],
		]) {
			expect(await cinema.run(...command, "--region", "US west")).toMatchObject({
				code: exitCodes.usage,
				err: expect.stringContaining('--region "US west" must consist of'),
			});
		}
	});
});

it("describe --region prints a copy, and what it is a copy of", async () => {
	await using cinema = await start();
	const { out, code } = await cinema.run("describe", "Film", "alien", "--region", "us");
	expect(code).toBe(exitCodes.ok);
	expect(out).toMatch(/^region: +us$/m);
	expect(out).toMatch(/^origin: +a copy of what has this name in the region us$/m);
	expect(out).toContain("title: Aliens");
	expect(await cinema.run("describe", "Film", "alien", "--region", "*")).toMatchObject({
		code: exitCodes.usage,
		err: expect.stringContaining("name one region"),
	});
});

it("watch --region prints changes of copies", async () => {
	await using cinema = await start();
	const watch = startPlinth(["watch", "Film", "--region", "us"], {
		env: { PLINTH_SERVER: cinema.server.address },
	});
	await watch.prints("Aliens");
	await cinema.server.client.write({ resource: film("alien", "Alien, again") });
	await cinema.server.store(copyOf("brazil", "Brasil", "asia"));
	await cinema.server.store(copyOf("alien", "Alien 3", "us"));
	await watch.prints("Alien 3");
	watch.interrupt();
	const { out } = await watch.ended;
	expect(cells(out, 2)).toEqual(["EVENT NAME", "present alien", "changed alien"]);
});

it("wait --region waits for copies", async () => {
	await using cinema = await start();
	const to = { env: { PLINTH_SERVER: cinema.server.address } };
	const shown = ["wait", "Film", "alien", "--for=condition=Shown", "--timeout=0s"];
	expect((await runPlinth(shown, to)).code).toBe(exitCodes.timeout);
	expect((await runPlinth([...shown, "--region", "us"], to)).code).toBe(exitCodes.ok);
	const created = startPlinth(
		["wait", "Film", "dune", "--for=create", "--region", "us", "--timeout=5m"],
		to,
	);
	await created.prints("waiting for");
	await cinema.server.client.write({ resource: film("dune", "Dune") });
	await cinema.server.store(copyOf("dune", "Dune", "us"));
	expect(await created.ended).toMatchObject({ code: exitCodes.ok });
	expect(await cinema.run("wait", "Film", "dune", "--for=create", "--region=*")).toMatchObject({
		code: exitCodes.usage,
	});
});

describe("a document of a copy", () => {
	it.each(["apply", "diff", "delete"])(
		"is refused by %s, which changes nothing",
		async (command) => {
			await using cinema = await start();
			const { out } = await cinema.run("get", "Film", "alien", "--region", "us", "-o", "yaml");
			for (const stdin of [out, out.replaceAll(/^(uid|generation|version): .*\n/gm, "")]) {
				const refused = await runPlinth([command, "-f", "-"], {
					...{ stdin },
					env: { PLINTH_SERVER: cinema.server.address },
				});
				expect(refused.code).toBe(exitCodes.usage);
				expect(refused.err).toContain(
					"this is a copy of a resource of the region us, and copies are read-only: write it in that region, without region, uid and generation",
				);
			}
			const local = await cinema.run("get", "Film", "alien", "-o", "yaml");
			expect(local.out).toContain("title: Alien\n");
		},
	);

	it("is applied without its region, as a resource of the server's region", async () => {
		await using cinema = await start();
		const { out } = await cinema.run("get", "Film", "brazil", "--region", "asia", "-o", "yaml");
		const stdin = out.replaceAll(/^(region|uid|generation): .*\n/gm, "");
		const to = { stdin, env: { PLINTH_SERVER: cinema.server.address } };
		expect(await runPlinth(["apply", "-f", "-"], to)).toMatchObject({ code: exitCodes.ok });
		expect((await cinema.run("get", "Film", "-o", "name")).out).toContain("Film/brazil");
	});
});

describe("a server that ignores regions", () => {
	it.each([
		"get Film",
		"get Film alien",
		"describe Film alien",
		"watch Film",
		"wait Film alien --for=create",
	])("is found out by %s", async (command) => {
		await using cinema = await start({ ignoresRegions: true });
		const { code, out, err } = await cinema.run(...command.split(" "), "--region", "us");
		expect(code).toBe(exitCodes.failed);
		expect(out).toBe("");
		expect(err).toBe(
			`plinth: ${cinema.server.address} is of a release that does not know regions, and has ignored --region us: upgrade it, or ask a server of us\n`,
		);
	});
});

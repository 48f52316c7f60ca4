import { create } from "@bufbuild/protobuf";
import { idOf, resourceOf } from "@plinth/resource";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FilmSchema, HallSchema } from "../../testdata/gen/cinema/v1/cinema_pb.ts";
import { Film, Hall } from "../cinema.fixture.ts";
import { type CinemaServer, startCinema } from "../cinema-server.fixture.ts";
import { type RunOptions, runPlinth } from "../run-plinth.fixture.ts";

let server: CinemaServer;
const run = (args: readonly string[], options: RunOptions = {}) =>
	runPlinth([...args, "--server", server.address], options);

beforeEach(async () => {
	server = await startCinema();
	for (const name of ["alien", "brazil"]) {
		await server.client.write({
			resource: resourceOf(Film, {
				id: idOf(Film, name),
				data: create(FilmSchema, { title: name }),
			}),
		});
	}
	await server.client.write({
		resource: resourceOf(Hall, { id: idOf(Hall, "one"), data: create(HallSchema, { seats: 80 }) }),
	});
});

afterEach(() => server[Symbol.asyncDispose]());

describe("plinth delete --all", () => {
	it("deletes all resources of a type in the namespace, and no others", async () => {
		expect(await run(["delete", "film", "--all", "--yes"])).toMatchObject({
			code: 0,
			out: "cinema.v1.Film/alien deleted\ncinema.v1.Film/brazil deleted\n",
		});
		expect((await run(["get", "film", "-o", "name"])).out).toBe("");
		expect((await run(["get", "hall", "-o", "name"])).out).toContain("Hall/one");
		expect(await run(["delete", "film", "--all", "--yes"])).toMatchObject({
			code: 0,
			err: "plinth: there is nothing to delete\n",
		});
	});

	it("lists them, and asks", async () => {
		const refused = await run(["delete", "film", "--all"], {
			isInteractive: true,
			ask: async () => "n",
		});
		expect(refused).toMatchObject({ code: 0, err: "plinth: nothing was deleted\n" });
		expect(refused.out).toContain("cinema.v1.Film/alien\ncinema.v1.Film/brazil\n");
		expect((await run(["get", "film", "-o", "name"])).out).toContain("alien");
	});

	it("deletes nothing where nobody can be asked, in a dry run, or with names", async () => {
		expect(await run(["delete", "film", "--all"])).toMatchObject({
			code: 2,
			err: expect.stringContaining("can't ask whether to delete these resources"),
		});
		expect((await run(["delete", "film", "--all", "--dry-run=server"])).out).toBe(
			"cinema.v1.Film/alien deleted (server dry run)\ncinema.v1.Film/brazil deleted (server dry run)\n",
		);
		expect(await run(["delete", "film", "alien", "--all", "--yes"])).toMatchObject({
			code: 2,
			err: expect.stringContaining("--all deletes all resources of one type"),
		});
		expect((await run(["get", "film", "-o", "name"])).out).toContain("alien");
	});
});

import { create } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import type { Resource } from "@plinth/proto";
import { idOf, resourceOf } from "@plinth/resource";
import { systemClock } from "@plinth/runtime";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { FilmSchema } from "../../testdata/gen/cinema/v1/cinema_pb.ts";
import { Film } from "../cinema.fixture.ts";
import { type CinemaServer, startCinema } from "../cinema-server.fixture.ts";
import { runPlinth, startPlinth } from "../run-plinth.fixture.ts";

let server: CinemaServer;
const clock = { ...systemClock, now: () => 0 };
const run = (...args: readonly string[]) =>
	runPlinth([...args, "--server", server.address], { clock });

/** A film as a program stored it in whose type field 1 was no text but a number. */
function broken(name: string): Resource {
	const resource = resourceOf(Film, { id: idOf(Film, name), data: create(FilmSchema) });
	const typeUrl = resource.data?.typeUrl ?? "";
	return { ...resource, data: create(AnySchema, { typeUrl, value: Uint8Array.of(0x08, 0x96, 1) }) };
}

beforeAll(async () => {
	server = await startCinema();
	for (const title of ["alien", "brazil"]) {
		const data = create(FilmSchema, { title });
		await server.client.write({ resource: resourceOf(Film, { id: idOf(Film, title), data }) });
	}
	await server.store(broken("metropolis"));
});

afterAll(() => server[Symbol.asyncDispose]());

const error = /can't be decoded as cinema\.v1\.Film: /;

describe("a stored resource that its type can't decode", () => {
	it("is a row of lists, with its error, and spoils none of the others", async () => {
		const { code, out, err } = await run("get", "film");
		expect({ code, err }).toEqual({ code: 0, err: "" });
		const lines = out.trimEnd().split("\n");
		expect(lines.map((line) => line.split(" ")[0])).toEqual([
			"NAME",
			"alien",
			"brazil",
			"metropolis",
		]);
		expect(lines[3]).toMatch(error);
		expect((await run("list", "film")).out).toBe(out);
	});

	it.each(["json", "yaml"])("is shown as its bytes, with its error, as %s", async (format) => {
		const { code, out } = await run("get", "film", "metropolis", "-o", format);
		expect(code).toBe(0);
		expect(out).toMatch(error);
		expect(out).toContain("CJYB");
		expect(out).toContain("type.googleapis.com/cinema.v1.Film");
	});

	it("is described", async () => {
		const { code, out } = await run("describe", "film", "metropolis");
		expect(code).toBe(0);
		expect(out).toMatch(error);
	});

	it("is watched", async () => {
		const watching = startPlinth(["watch", "film", "--server", server.address], { clock });
		await watching.prints("metropolis");
		expect(watching.out()).toMatch(error);
		expect(watching.out()).toContain("brazil");
		watching.interrupt();
		await watching.ended;
	});

	it("can be replaced by what its type can decode, and deleted", async () => {
		await server.store(broken("nosferatu"));
		const document = "type: cinema.v1.Film\nname: nosferatu\ndata: {title: Nosferatu}\n";
		const applied = await runPlinth(["apply", "-f", "-", "--server", server.address], {
			clock,
			stdin: document,
		});
		expect(applied).toMatchObject({ code: 0, out: "cinema.v1.Film/nosferatu updated\n" });

		await server.store(broken("nosferatu"));
		expect(await run("delete", "film", "nosferatu")).toMatchObject({
			code: 0,
			out: "cinema.v1.Film/nosferatu deleted\n",
		});
	});
});

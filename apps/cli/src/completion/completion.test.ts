import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { idOf, resourceOf } from "@plinth/resource";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { FilmSchema } from "../../testdata/gen/cinema/v1/cinema_pb.ts";
import { Film } from "../cinema.fixture.ts";
import { type CinemaServer, startCinema } from "../cinema-server.fixture.ts";
import { plinthMain } from "../process.fixture.ts";
import { runPlinth } from "../run-plinth.fixture.ts";
import { CompletingBash } from "./completing-bash.fixture.ts";

let server: CinemaServer;
let folder: string;
let env: Readonly<Record<string, string>>;

beforeAll(async () => {
	server = await startCinema();
	for (const name of ["alien", "aliens", "brazil"]) {
		const data = create(FilmSchema, { title: name });
		await server.client.write({ resource: resourceOf(Film, { id: idOf(Film, name), data }) });
	}
	folder = await mkdtemp(join(tmpdir(), "plinth-completion-"));
	mkdirSync(join(folder, "bin"));
	const program = join(folder, "bin", "plinth");
	writeFileSync(program, `#!/bin/sh\nexec "${process.execPath}" "${plinthMain}" "$@"\n`);
	chmodSync(program, 0o755);
	writeFileSync(join(folder, "catalog.yaml"), "");
	env = { PLINTH_SERVER: server.address, XDG_CONFIG_HOME: folder };
});

afterAll(async () => {
	await server[Symbol.asyncDispose]();
	await rm(folder, { recursive: true });
});

describe("completion in bash", () => {
	let bash: CompletingBash;
	beforeAll(() => {
		bash = new CompletingBash({ folder, plinth: (args) => runPlinth(args, { env }) });
	});
	afterAll(() => bash.close());

	it.each([
		["plinth ge", ["get"]],
		["plinth get cinema.v1.", ["cinema.v1.Film", "cinema.v1.Hall"]],
		["plinth get Film a", ["alien", "aliens"]],
		["plinth delete Film alien b", ["brazil"]],
		["plinth describe Film/b", ["Film/brazil"]],
		["plinth get Film -o ", ["table", "yaml", "json", "name", "wide"]],
		["plinth get Film --output=y", ["yaml"]],
		["plinth get Film --al", ["--all-namespaces"]],
		["plinth apply -f cat", ["catalog.yaml"]],
		["plinth wait Film alien --for=", ["condition=", "delete", "create"]],
		["plinth -n def", ["default"]],
		["plinth explain Film data.tit", ["data.title"]],
		["plinth get Film --sort-by data.tit", ["data.title"]],
		["plinth get Film --sort-by a", ["age"]],
		["plinth apply -f catalog.yaml --prune F", ["Film"]],
		["plinth apply -f catalog.yaml --prune Film H", ["Hall"]],
		["plinth apply -f catalog.yaml --prune Film --y", ["--yes"]],
		["plinth apply -f catalog.yaml c", ["catalog.yaml"]],
		["plinth backup cat", ["catalog.yaml"]],
		["plinth api F", [""]],
		["plinth deployments settle F", [""]],
		["plinth context ", ["list", "set", "use", "delete"]],
	])("completes %j", async (line, expected) => {
		expect(await bash.completes(line)).toEqual(expected);
	});

	it("runs the program that is in the PATH", async () => {
		const path = `${join(folder, "bin")}${delimiter}${process.env.PATH}`;
		const other = new CompletingBash({ folder, env: { ...env, PATH: path } });
		expect(await other.completes("plinth get Film a")).toEqual(["alien", "aliens"]);
		await other.close();
	});
});

describe("candidates", () => {
	const complete = async (...words: readonly string[]) =>
		(await runPlinth(["__complete", "--", ...words], { env: { PLINTH_SERVER: server.address } }))
			.out;

	it("are asked of the server that the line names, and are none where it says nothing", async () => {
		const words = ["get", "--server", "http://127.0.0.1:1", ""];
		expect(await complete(...words)).toBe("");
		expect(await complete("get", "--server", server.address, "Fi")).toBe("Film\n");
		expect(await complete("get", "Nope", "")).toBe("");
	});

	it("are the namespaces and partitions of the server", async () => {
		expect(await complete("get", "Film", "-n", "")).toBe("default\n");
		expect(await complete("--partition", "d")).toBe("default\n");
	});

	it("hide the hidden command, and end where no argument follows", async () => {
		expect(await complete("")).not.toContain("__complete");
		expect(await complete("types", "Film", "")).toBe("");
		expect(await complete("completion", "")).toBe("bash\nzsh\nfish\n");
	});
});

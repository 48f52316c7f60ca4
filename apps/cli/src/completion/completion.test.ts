import { spawn } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { create } from "@bufbuild/protobuf";
import { idOf, resourceOf } from "@plinth/resource";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { FilmSchema } from "../../testdata/gen/cinema/v1/cinema_pb.ts";
import { Film } from "../cinema.fixture.ts";
import { type CinemaServer, startCinema } from "../cinema-server.fixture.ts";
import { runPlinth } from "../run-plinth.fixture.ts";

let server: CinemaServer;
let folder: string;

beforeAll(async () => {
	server = await startCinema();
	for (const name of ["alien", "aliens", "brazil"]) {
		const data = create(FilmSchema, { title: name });
		await server.client.write({ resource: resourceOf(Film, { id: idOf(Film, name), data }) });
	}
	folder = mkdtempSync(join(tmpdir(), "plinth-completion-"));
	const main = fileURLToPath(new URL("../main.ts", import.meta.url));
	mkdirSync(join(folder, "bin"));
	const program = join(folder, "bin", "plinth");
	writeFileSync(program, `#!/bin/sh\nexec "${process.execPath}" "${main}" "$@"\n`);
	chmodSync(program, 0o755);
	writeFileSync(join(folder, "catalog.yaml"), "");
});

afterAll(async () => {
	await server[Symbol.asyncDispose]();
	rmSync(folder, { recursive: true });
});

/** What a real bash completes the line to: its words are split as bash splits them. */
async function bashCompletes(line: string): Promise<readonly string[]> {
	const script = `
source <(plinth completion bash)
# Words as readline breaks them, with = as a word of its own.
COMP_LINE=$1; COMP_POINT=\${#COMP_LINE}
read -r -a COMP_WORDS <<< "\${1//=/ = }"
[[ $1 == *[[:space:]] ]] && COMP_WORDS+=("")
COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
complete -p plinth > /dev/null || exit 1
_plinth
printf '%s\\n' "\${COMPREPLY[@]}"
`;
	const bash = spawn("bash", ["--norc", "-c", script, "bash", line], {
		cwd: folder,
		env: {
			...process.env,
			PATH: `${join(folder, "bin")}${delimiter}${process.env.PATH}`,
			PLINTH_SERVER: server.address,
			PLINTH_CONFIG: join(folder, "config.yaml"),
		},
		stdio: ["ignore", "pipe", "inherit"],
	});
	let out = "";
	for await (const chunk of bash.stdout.setEncoding("utf8")) {
		out += chunk;
	}
	return out.trim().split("\n");
}

describe("completion in bash", () => {
	it.each([
		["plinth ge", ["get"]],
		["plinth get cinema.v1.", ["cinema.v1.Film", "cinema.v1.Hall"]],
		["plinth get Film a", ["alien", "aliens"]],
		["plinth delete Film alien b", ["brazil"]],
		["plinth describe Film/b", ["Film/brazil"]],
		["plinth get Film -o ", ["table", "yaml", "json", "name"]],
		["plinth get Film --output=y", ["yaml"]],
		["plinth get Film --al", ["--all-namespaces"]],
		["plinth apply -f cat", ["catalog.yaml"]],
		["plinth wait Film alien --for=", ["condition=", "delete", "create"]],
		["plinth -n def", ["default"]],
		["plinth context ", ["list", "set", "use", "delete"]],
	])("completes %j", async (line, expected) => {
		expect(await bashCompletes(line)).toEqual(expected);
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

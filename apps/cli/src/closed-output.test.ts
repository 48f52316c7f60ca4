import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { temporaryFolder } from "@plinth/test-support";
import { describe, expect, it } from "vitest";
import { startCinema } from "./cinema-server.fixture.ts";
import { plinthMain, TestProcess } from "./process.fixture.ts";
import { runPlinth } from "./run-plinth.fixture.ts";

/** A server, and a shell in which `plinth` calls it. */
async function startedShell() {
	const folder = await temporaryFolder();
	const server = await startCinema();
	const env = {
		PLINTH_SERVER: server.address,
		PLINTH_TOKEN: "a",
		XDG_CONFIG_HOME: join(folder, "configuration"),
	};
	return {
		folder,
		shell: (script: string) =>
			new TestProcess(
				"bash",
				[
					"-c",
					`set -o pipefail; plinth() { "${process.execPath}" "${plinthMain}" "$@"; }; ${script}`,
				],
				env,
			).ended,
		names: async () => (await runPlinth(["list", "Film", "-o", "name"], { env })).out,
		[Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
	};
}

describe("plinth, with output that can't be written", () => {
	it("finishes what it changes, and exits by the result", async () => {
		await using started = await startedShell();
		const { shell, names, folder } = started;
		const file = join(folder, "many.yaml");
		const all = Array.from({ length: 40 }, (_, n) => `film-${n}`);
		await writeFile(
			file,
			all.map((name) => `---\ntype: Film\nname: ${name}\ndata: {title: ${name}}\n`).join(""),
		);
		expect(await shell(`plinth apply -f ${file} | true`)).toEqual({ code: 0, out: "", err: "" });
		for (const name of all) {
			expect(await names()).toContain(`/${name}\n`);
		}
		// Standard error is closed as well.
		await shell(`plinth delete -f ${file} 2>&1 | true`);
		expect(await names()).toBe("");
		expect(await shell(`plinth delete Film nope | true`)).toMatchObject({ code: 3 });
	});

	it("says why, and fails", async () => {
		await using started = await startedShell();
		const { shell, names, folder } = started;
		const full = {
			code: 1,
			out: "",
			err: "plinth: can't write to standard output: no space left on device\n",
		};
		expect(await shell("plinth get Namespace -o yaml > /dev/full")).toEqual(full);
		expect(await shell("plinth --help > /dev/full")).toEqual(full);
		const apply = `echo '{"type": "Film", "name": "late", "data": {"title": "Late"}}' | plinth apply -f -`;
		expect(await shell(`${apply} > /dev/full`)).toEqual(full);
		expect(await names()).toContain("/late\n");
		// Of what does not fit, the stream of Node.js drops the rest without an error.
		expect(await shell(`ulimit -f 1; plinth --help > ${join(folder, "help")}`)).toEqual({
			...full,
			err: "plinth: can't write to standard output: file too large\n",
		});
	});
});

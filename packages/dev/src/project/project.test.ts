import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { systemClock } from "@plinth/runtime";
import { temporaryFolder } from "@plinth/test-support";
import { describe, expect, it, onTestFinished } from "vitest";
import { openFront } from "../front/open-front.ts";
import type { DevFlags } from "./dev-options.ts";
import { findProject } from "./project.ts";
import { projectServer } from "./server-flags.ts";

const flags: DevFlags = { module: "src/module.ts", proto: "proto", check: true, generate: true };

/** A folder with these files; folders end with a slash. */
async function folderWith(...files: readonly string[]): Promise<string> {
	const folder = await temporaryFolder();
	for (const file of files) {
		await mkdir(join(folder, file, file.endsWith("/") ? "." : ".."), { recursive: true });
		if (!file.endsWith("/")) {
			await writeFile(join(folder, file), "");
		}
	}
	return folder;
}

function contextIn(folder: string, ...serverFlags: readonly string[]) {
	return { folder, serverFlags, environment: {} };
}

describe("a project", () => {
	it("without a module says how to get one", async () => {
		const folder = await folderWith();
		expect(() => findProject(flags, contextIn(folder))).toThrow(
			`there is no module src/module.ts in ${folder}: run plinth dev in the folder of a project, name another module with --module <file>, or create a project with npm create plinth@latest`,
		);
	});

	it("with a folder in place of the module says so", async () => {
		const folder = await folderWith("src/");
		expect(() => findProject({ ...flags, module: "src" }, contextIn(folder))).toThrow(
			"module src is not a file: name the file that exports the module",
		);
	});

	it("without installed packages says how to install them", async () => {
		const folder = await folderWith("src/module.ts");
		expect(() => findProject(flags, contextIn(folder))).toThrow(
			`the packages of ${folder} are not installed: run npm install`,
		);
	});

	it("that generates code without buf says how to install it, or do without", async () => {
		const folder = await folderWith("src/module.ts", "node_modules/", "buf.gen.yaml");
		expect(() => findProject(flags, contextIn(folder))).toThrow(
			"buf, which generates code as buf.gen.yaml says, is not installed: run npm install --save-dev @bufbuild/buf @bufbuild/protoc-gen-es, or start with --no-generate",
		);
		expect(findProject({ ...flags, generate: false }, contextIn(folder))).toEqual({
			folder,
			codeFolder: join(folder, "src"),
		});
	});

	it("uses the tools that are installed", async () => {
		const folder = await folderWith(
			...["src/module.ts", "tsconfig.json", "buf.gen.yaml"],
			...["node_modules/.bin/buf", "node_modules/.bin/tsc"],
		);
		expect(findProject(flags, contextIn(folder))).toEqual({
			folder,
			codeFolder: join(folder, "src"),
			generator: {
				program: join(folder, "node_modules/.bin/buf"),
				inputs: ["proto", "buf.gen.yaml", "buf.yaml"].map((each) => join(folder, each)),
			},
			typeChecker: join(folder, "node_modules/.bin/tsc"),
		});
	});
});

describe("the server of a project", () => {
	it("has its data in the project, unless a flag or a variable says otherwise", () => {
		expect(projectServer(flags, contextIn("/p"))).toMatchObject({
			listen: { host: "127.0.0.1", port: 7575 },
			storage: ".plinth/data",
			scheme: "http",
		});
		expect(projectServer({ ...flags, dataDir: "a" }, contextIn("/p")).storage).toBe("a");
		expect(projectServer(flags, contextIn("/p", "--data-dir", "b")).storage).toBe("b");
		expect(projectServer(flags, contextIn("/p", "--storage", "memory")).storage).toBe("memory");
		const environment = { PLINTH_DATA_DIR: "c", PLINTH_LISTEN: "[::1]:1" };
		expect(projectServer(flags, { ...contextIn("/p"), environment })).toMatchObject({
			listen: { host: "::1", port: 1 },
			storage: "c",
		});
	});

	it("ends calls earlier than in production when it stops, unless told otherwise", () => {
		const usual = projectServer(flags, contextIn("/p"));
		expect(usual.flags.slice(-2)).toEqual(["--limits-stop-timeout", "1000ms"]);
		expect(usual.stopLimitMs).toBe(1_000);
		const patient = projectServer(flags, contextIn("/p", "--limits-stop-timeout", "1m"));
		expect(patient.flags.slice(-2)).toEqual(["--limits-stop-timeout", "1m"]);
		expect(patient.stopLimitMs).toBe(60_000);
	});

	it.each([
		[{ listen: "nowhere" }, [], '--listen "nowhere" is not <host>:<port>'],
		[{ listen: "0.0.0.0:1" }, [], "--listen 0.0.0.0:1 is reachable from other machines"],
		[{}, ["--lisen", "x"], "unknown flag --lisen: did you mean --listen?"],
		[{}, ["--help"], "the flags of plinth-server are listed by npx plinth-server --help"],
	])("with %j and %j says what is wrong", (more, serverFlags, message) => {
		expect(() => projectServer({ ...flags, ...more }, contextIn("/p", ...serverFlags))).toThrow(
			message,
		);
	});
});

it("a port that is in use is explained", async () => {
	const other = createServer().listen(0, "127.0.0.1");
	await once(other, "listening");
	onTestFinished(() => void other.close());
	const address = other.address();
	const port = typeof address === "object" && address !== null ? address.port : 0;
	await expect(openFront({ host: "127.0.0.1", port }, systemClock)).rejects.toThrow(
		`127.0.0.1:${port} is in use by another program, perhaps another plinth dev: stop it, or choose another address with --listen 127.0.0.1:${port + 1}`,
	);
});

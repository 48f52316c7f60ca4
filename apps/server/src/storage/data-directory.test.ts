import { spawnSync } from "node:child_process";
import {
	chmod,
	lchown,
	mkdir,
	mkdtemp,
	readdir,
	rm,
	stat,
	symlink,
	writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLogger } from "@plinth/runtime";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ServerProcess } from "../server-process.fixture.ts";
import { startServer } from "../started-server.fixture.ts";
import { openDataDirectory } from "./data-directory.ts";

let folder: string;
let umask: number;

beforeEach(async () => {
	folder = await mkdtemp(join(tmpdir(), "plinth-data-"));
	umask = process.umask(0o022);
});

afterEach(async () => {
	process.umask(umask);
	await rm(folder, { recursive: true });
});

async function modeOf(path: string): Promise<string> {
	return ((await stat(path)).mode & 0o777).toString(8);
}

/** Opens a directory. Returns the warnings. */
async function warnings(directory: string): Promise<readonly unknown[]> {
	const lines: unknown[] = [];
	await openDataDirectory(directory, { ...silentLogger, warn: (fields) => lines.push(fields) });
	return lines;
}

describe("the data directory", () => {
	it("of a server that runs, and all files in it, are their owner's alone", async () => {
		const directory = join(folder, "a", "data");
		await startServer({ storage: { kind: "sqlite", directory } });
		expect(await modeOf(directory)).toBe("700");
		expect(await modeOf(join(folder, "a"))).toBe("700");
		const names = await readdir(directory);
		expect(names).toEqual(expect.arrayContaining(["plinth.sqlite", "plinth.sqlite-wal"]));
		for (const name of names) {
			expect(await modeOf(join(directory, name)), name).toBe("600");
		}
	});

	it("loses access for other users if it contains only files of a server", async () => {
		const directory = join(folder, "data");
		await mkdir(directory);
		await writeFile(join(directory, "plinth.sqlite"), "");
		await chmod(directory, 0o755);
		expect(await warnings(directory)).toEqual([]);
		expect(await modeOf(directory)).toBe("700");
	});

	it("is left as it is, with a warning, if it has other uses", async () => {
		const directory = join(folder, "home");
		await mkdir(directory);
		await writeFile(join(directory, "notes.txt"), "");
		await chmod(directory, 0o755);
		expect(await warnings(directory)).toEqual([{ directory, mode: "755" }]);
		expect(await modeOf(directory)).toBe("755");
	});

	it("is refused by name if it can't be used", async () => {
		const file = join(folder, "file");
		await writeFile(file, "");
		await symlink("nowhere", join(folder, "dangling"));
		await symlink("loop", join(folder, "loop"));
		for (const [directory, why] of [
			[file, "it is a file, not a directory"],
			[join(file, "below"), "ENOTDIR"],
			[join(folder, "dangling"), 'it is a symbolic link to "nowhere", whose target does not exist'],
			[join(folder, "loop"), "ELOOP"],
			[join(folder, "x".repeat(300)), "ENAMETOOLONG"],
		] as const) {
			const refused = openDataDirectory(directory, silentLogger);
			await expect(refused).rejects.toThrow(
				`storage ${directory}: the data directory (--data-dir)`,
			);
			await expect(openDataDirectory(directory, silentLogger)).rejects.toThrow(why);
		}
	});

	it.skipIf(process.getuid?.() !== 0)(
		"is not made through another user's link in a shared directory",
		async () => {
			await chmod(folder, 0o1777);
			await mkdir(join(folder, "real"));
			await symlink("real", join(folder, "planted"));
			await lchown(join(folder, "planted"), 65534, 65534);
			for (const directory of [join(folder, "planted"), join(folder, "planted", "a", "data")]) {
				await expect(openDataDirectory(directory, silentLogger)).rejects.toThrow(
					`storage ${directory}: the data directory (--data-dir) can't be used: ${join(folder, "planted")} is a symbolic link of user 65534, in a directory that others may write to: remove it,`,
				);
			}
			expect(await readdir(join(folder, "real"))).toEqual([]);
		},
	);

	it("can be a link to a directory, or be created by several processes concurrently", async () => {
		await mkdir(join(folder, "real"), { mode: 0o700 });
		await symlink("real", join(folder, "link"));
		expect(await warnings(join(folder, "link"))).toEqual([]);
		const directory = join(folder, "p", "q", "data");
		await Promise.all(Array.from({ length: 8 }, () => openDataDirectory(directory, silentLogger)));
		expect(await modeOf(directory)).toBe("700");
	});
});

const isLinux = process.platform === "linux";

describe.skipIf(!isLinux)("a server process whose data directory", () => {
	it("is below /proc fails immediately, and does not loop", async () => {
		for (const directory of ["/proc/plinth", "/proc/plinth/data"]) {
			const server = new ServerProcess("--listen", "127.0.0.1:0", "--data-dir", directory);
			const { code, stderr } = await server.ended;
			expect(code).toBe(1);
			expect(stderr).toContain(`plinth-server: storage ${directory}: the data directory`);
			expect(stderr).not.toContain("    at ");
		}
	});

	const canDropRights =
		process.getuid?.() === 0 &&
		spawnSync("setpriv", ["--bounding-set=-all", "--inh-caps=-all", "true"]).status === 0;
	it.skipIf(process.getuid?.() === 0 && !canDropRights)("can't be written to says so", async () => {
		const directory = join(folder, "read-only");
		await mkdir(directory, { mode: 0o500 });
		const script = `import { openDataDirectory } from ${JSON.stringify(new URL("./data-directory.ts", import.meta.url).href)};
			import { silentLogger } from "@plinth/runtime";
			await openDataDirectory(${JSON.stringify(directory)}, silentLogger).catch((error) => console.log(error.message));`;
		const node = [process.execPath, "--input-type=module-typescript", "--eval", script];
		const [command = "", ...args] = canDropRights
			? ["setpriv", "--bounding-set=-all", "--inh-caps=-all", ...node]
			: node;
		const { stdout, stderr } = spawnSync(command, args, {
			encoding: "utf8",
			cwd: new URL(".", import.meta.url).pathname,
		});
		expect(stderr).toBe("");
		expect(stdout).toContain(`storage ${directory}: the data directory`);
		expect(stdout).toMatch(
			/user \d+, who runs this process, needs to read, write and search it \(EACCES/,
		);
	});
});

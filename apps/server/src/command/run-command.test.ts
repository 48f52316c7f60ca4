import { existsSync } from "node:fs";
import { truncate } from "node:fs/promises";
import { join } from "node:path";
import { createSqliteBackend } from "@plinth/storage-sqlite";
import { temporaryFolder } from "@plinth/test-support";
import { describe, expect, it } from "vitest";
import type { Configuration } from "../configuration/configuration.ts";
import { loadModules } from "../module/load-module.ts";
import { runCommand } from "./run-command.ts";

/** Runs a command line in this process. A server only loads its modules. */
async function run(...args: readonly string[]) {
	const output = { stdout: "", stderr: "" };
	const served: Configuration[] = [];
	const code = await runCommand(args, {
		environment: {},
		stdout: {
			write: (text) => {
				output.stdout += text;
			},
		},
		stderr: {
			write: (text) => {
				output.stderr += text;
			},
		},
		serve: async (configuration) => {
			served.push(configuration);
			await loadModules(configuration.modules);
			return 0;
		},
	});
	return { code, ...output, served };
}

describe("a command line of plinth-server", () => {
	it.each(["--version", "version"])("%s prints the version", async (word) => {
		const { code, stdout, stderr } = await run(word);
		expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
		expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
	});

	it("new-token prints another token each time", async () => {
		const [first, second] = [await run("new-token"), await run("new-token")];
		expect(first.stdout).toMatch(/^token {3}plinth_\S+\nsha256 {2}[0-9a-f]{64}\n$/);
		expect(second.stdout).not.toBe(first.stdout);
		expect(first.stderr).toBe(
			"plinth-server: the token is for the caller, the hash for the access file\n",
		);
	});

	it.each([
		["restore", ["--config", "--data-dir", "--log-level", "--help"]],
		["backup", ["--config", "--data-dir", "--log-level", "--help"]],
		[
			"etcd-restored",
			[
				...["--config", "--storage", "--etcd-endpoints", "--etcd-prefix", "--etcd-ca-file"],
				...["--etcd-cert-file", "--etcd-key-file", "--etcd-user", "--etcd-password-file", "--help"],
			],
		],
		["new-token", []],
		["version", []],
	])("%s --help prints its usage, and the flags that it uses", async (command, flags) => {
		const { code, stdout } = await run(command, "--help");
		expect(code).toBe(0);
		expect(stdout).toMatch(
			new RegExp(`^plinth-server ${command}: .*\n\nUsage:\n  plinth-server ${command}`),
		);
		expect(stdout.match(/^ {2}--[\w-]+/gm) ?? []).toEqual(flags.map((flag) => `  ${flag}`));
	});

	it.each([[["--storage", "memory", "--help"]], [["--prot", "--help"]]])(
		"%j prints the help",
		async (args) => {
			const { code, stdout, served } = await run(...args);
			expect({ code, served }).toEqual({ code: 0, served: [] });
			expect(stdout).toContain("--listen <host:port>");
		},
	);

	it("without a command serves with the configuration of its flags", async () => {
		const { code, served } = await run("--storage", "memory");
		expect(code).toBe(0);
		expect(served).toMatchObject([{ storage: "memory" }]);
	});

	it.each([
		[["--prot", "1"], 2, "unknown flag --prot"],
		[["--module", "./nowhere.ts"], 1, "module ./nowhere.ts: no such file"],
		[["restore"], 2, "restore needs a file"],
		[["backup", "copy", "--storage", "memory"], 2, "backup needs --storage sqlite"],
		[["etcd-restored"], 2, "etcd-restored needs --storage etcd"],
		[["--config", "./nowhere.yaml"], 2, "./nowhere.yaml: "],
	])("%j names the problem", async (args, expected, message) => {
		const { code, stdout, stderr } = await run(...args);
		expect({ code, stdout }).toEqual({ code: expected, stdout: "" });
		expect(stderr).toContain(`plinth-server: ${message}`);
		expect(stderr).not.toContain("    at ");
	});

	it("names a backup that does not exist", async () => {
		const folder = await temporaryFolder();
		const { code, stderr } = await run("restore", join(folder, "no"), "--data-dir", folder);
		expect(code).toBe(1);
		expect(stderr).toBe(`plinth-server: backup ${join(folder, "no")}: the file does not exist\n`);
	});

	it("says what to do about a backup that is damaged, and leaves no new directory", async () => {
		const folder = await temporaryFolder();
		const [backup, dataDirectory] = [join(folder, "backup"), join(folder, "a/data")];
		const storage = await createSqliteBackend({ path: backup });
		await storage.close();
		await truncate(backup, 6_000);
		const { code, stderr } = await run("restore", backup, "--data-dir", dataDirectory);
		expect(code).toBe(1);
		expect(stderr).toContain(
			`plinth-server: backup ${backup}: the file is damaged, and has been left as it is: use another backup: `,
		);
		expect(existsSync(join(folder, "a"))).toBe(false);
	});

	it("shows the stack of a failure that is not expected", async () => {
		const write = () => {};
		let stderr = "";
		const code = await runCommand([], {
			environment: {},
			stdout: { write },
			stderr: {
				write: (text) => {
					stderr += text;
				},
			},
			serve: async () => {
				throw new Error("a defect");
			},
		});
		expect(code).toBe(1);
		expect(stderr).toMatch(/^plinth-server: Error: a defect\n {4}at /);
	});
});

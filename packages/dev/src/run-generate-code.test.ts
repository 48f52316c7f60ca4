import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { createDevProject, devProgram } from "./dev-project.fixture.ts";

const proto = "proto/zoo/v1/animal.proto";

/** Runs `plinth generate code` in a folder. */
async function generateCode(cwd: string) {
	const child = spawn(process.execPath, [devProgram, "generate", "code"], {
		cwd,
		stdio: ["ignore", "inherit", "pipe"],
	});
	const [errors, [exitCode]] = await Promise.all([text(child.stderr), once(child, "close")]);
	return { errors, exitCode };
}

describe("plinth generate code", () => {
	it("generates for the project around the folder", async () => {
		const { folder } = await createDevProject();
		expect(await generateCode(join(folder, "src"))).toEqual({ errors: "", exitCode: 0 });
		expect(existsSync(join(folder, "src/gen/zoo/v1/animal_pb.ts"))).toBe(true);
	});

	it("shows what is wrong in protos with its code, and keeps what was generated", async () => {
		const project = await createDevProject();
		await generateCode(project.folder);
		await project.edit(proto, "string species = 1;", "string species = ;");
		const { errors, exitCode } = await generateCode(project.folder);
		expect(exitCode).toBe(1);
		expect(errors).toContain(`${proto}:11:`);
		expect(errors).toContain("  > 11 |   string species = ;");
		expect(existsSync(join(project.folder, "src/gen/zoo/v1/animal_pb.ts"))).toBe(true);
	});

	it("says what is missing", async () => {
		const { folder } = await createDevProject();
		await rm(join(folder, "node_modules/.bin/buf"));
		expect(await generateCode(folder)).toEqual({
			errors: expect.stringMatching(/^plinth: buf, .* is not installed: run npm install .*\n$/),
			exitCode: 2,
		});
		await rm(join(folder, "buf.gen.yaml"));
		expect(await generateCode(folder)).toEqual({
			errors: `plinth: there is no buf.gen.yaml in ${folder}, nor in a folder above it: run plinth generate code in the folder of a project\n`,
			exitCode: 2,
		});
	});
});

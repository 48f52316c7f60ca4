import { mkdir, rename, rm, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, systemClock } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import { temporaryFolder } from "@plinth/test-support";
import { describe, expect, it, onTestFinished } from "vitest";
import { contentHash } from "./content-hash.ts";
import { type Change, WatchedFiles } from "./watched-files.ts";

/** A project that is watched; its module was imported. */
async function watchedProject(clock: Clock = systemClock) {
	const folder = await temporaryFolder();
	const at = (file: string) => join(folder, file);
	for (const each of ["src/types", "proto", "node_modules/x", "outside"]) {
		await mkdir(at(each), { recursive: true });
	}
	for (const file of ["src/module.ts", "src/unused.ts", "proto/a.proto", "outside/shared.ts"]) {
		await writeFile(at(file), "1");
	}
	const changes: Change[] = [];
	const files = new WatchedFiles({
		clock,
		codeFolder: at("src"),
		generatorInputs: [at("proto"), at("buf.gen.yaml")],
		onChange: (change) => void changes.push(change),
	});
	onTestFinished(() => files.close());
	await files.ready();
	files.useInputs();
	files.useCode();
	files.imported([
		{ path: at("src/module.ts"), hash: contentHash("1") },
		{ path: at("outside/shared.ts"), hash: contentHash("1") },
	]);
	/** The paths of the changes until this file is among them. */
	const until = async (file: string) => {
		await expect.poll(() => changes.some(({ files }) => files.includes(at(file)))).toBe(true);
		const found = changes.splice(0);
		return {
			files: [...new Set(found.flatMap((change) => change.files))].map((path) =>
				path.slice(folder.length + 1),
			),
			generate: found.some(({ generate }) => generate),
		};
	};
	return { at, files, changes, until };
}

describe("watched files", () => {
	it("reports what was imported, wherever it is, new code, and inputs of the generator", async () => {
		const { at, until } = await watchedProject();
		await writeFile(at("src/module.ts"), "2");
		expect(await until("src/module.ts")).toEqual({ files: ["src/module.ts"], generate: false });
		await writeFile(at("outside/shared.ts"), "2");
		expect(await until("outside/shared.ts")).toMatchObject({ files: ["outside/shared.ts"] });
		await writeFile(at("src/types/new.ts"), "2");
		expect(await until("src/types/new.ts")).toMatchObject({ files: ["src/types/new.ts"] });
		await writeFile(at("proto/a.proto"), "2");
		expect(await until("proto/a.proto")).toEqual({ files: ["proto/a.proto"], generate: true });
		await writeFile(at("buf.gen.yaml"), "2");
		expect(await until("buf.gen.yaml")).toEqual({ files: ["buf.gen.yaml"], generate: true });
		await rm(at("src/module.ts"));
		expect(await until("src/module.ts")).toMatchObject({ files: ["src/module.ts"] });
	});

	it("reports code that nothing imports, and tests, only for the types", async () => {
		const { at, changes } = await watchedProject();
		for (const file of ["src/unused.ts", "src/new.test.ts"]) {
			changes.length = 0;
			await writeFile(at(file), "2");
			await expect.poll(() => changes.length).toBeGreaterThan(0);
		}
		expect(changes.flatMap(({ files }) => files)).toEqual([]);
		expect(changes.some(({ generate }) => generate)).toBe(false);
	});

	it("reports files that are saved by a rename, each time", async () => {
		const { at, until } = await watchedProject();
		for (const content of ["2", "3", "4"]) {
			await writeFile(at("src/module.ts~"), content);
			await rename(at("src/module.ts~"), at("src/module.ts"));
			expect(await until("src/module.ts")).toMatchObject({ files: ["src/module.ts"] });
		}
	});

	it("reports no file whose content is the same, nor what is not code", async () => {
		const { at, changes } = await watchedProject();
		await utimes(at("src/module.ts"), 1, 1);
		await writeFile(at("node_modules/x/index.ts"), "2");
		await writeFile(at("src/notes.txt"), "2");
		const expected = ["outside/shared.ts", "src/types/a.ts", "src/types/b.ts"].map(at);
		await Promise.all(expected.map((path) => writeFile(path, "2")));
		const reported = () => [...new Set(changes.flatMap(({ files }) => files))].sort();
		await expect.poll(reported).toEqual(expected);
	});

	it("waits for the end of a burst, and does not report what is in use by then", async () => {
		const clock = new FakeClock();
		const { at, files, changes } = await watchedProject(clock);
		await writeFile(at("src/types/generated.ts"), "2");
		files.useCode();
		await writeFile(at("src/types/later.ts"), "2");
		const reported = async () => {
			await clock.advance(30);
			return changes.flatMap((change) => change.files);
		};
		await expect.poll(reported).toContain(at("src/types/later.ts"));
		expect(await reported()).not.toContain(at("src/types/generated.ts"));
	});

	it("reports a file that has changed since it was imported", async () => {
		const { at, files, until } = await watchedProject();
		files.imported([{ path: at("src/unused.ts"), hash: contentHash("0") }]);
		expect(await until("src/unused.ts")).toMatchObject({ files: ["src/unused.ts"] });
	});
});

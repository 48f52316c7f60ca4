import { mkdir, rename, rm, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "@plinth/runtime";
import { temporaryFolder } from "@plinth/test-support";
import { describe, expect, it, onTestFinished } from "vitest";
import { contentHash } from "./content-hash.ts";
import { type Change, WatchedFiles } from "./watched-files.ts";

/** A project that is watched; its module was imported. */
async function watchedProject() {
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
		clock: systemClock,
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
		await writeFile(at("src/unused.ts"), "2");
		await expect.poll(() => changes.splice(0)).toMatchObject([{ files: [], generate: false }]);
		await writeFile(at("src/new.test.ts"), "2");
		await expect.poll(() => changes.splice(0)).toMatchObject([{ files: [], generate: false }]);
	});

	it("reports files that are saved by a rename, each time", async () => {
		const { at, until } = await watchedProject();
		for (const content of ["2", "3", "4"]) {
			await writeFile(at("src/module.ts~"), content);
			await rename(at("src/module.ts~"), at("src/module.ts"));
			expect(await until("src/module.ts")).toMatchObject({ files: ["src/module.ts"] });
		}
	});

	it("reports a burst once, and no file whose content is the same", async () => {
		const { at, changes, until } = await watchedProject();
		await utimes(at("src/module.ts"), 1, 1);
		await writeFile(at("src/module.ts"), "1");
		await writeFile(at("node_modules/x/index.ts"), "2");
		await writeFile(at("src/notes.txt"), "2");
		await Promise.all([
			writeFile(at("src/types/a.ts"), "2"),
			writeFile(at("src/types/b.ts"), "2"),
			writeFile(at("outside/shared.ts"), "2"),
		]);
		await expect.poll(() => changes.flatMap(({ files }) => files).length).toBe(3);
		expect(changes.length).toBeLessThan(3);
		const { files } = await until("src/types/a.ts");
		expect(files.toSorted()).toEqual(["outside/shared.ts", "src/types/a.ts", "src/types/b.ts"]);
	});

	it("does not report what is in use by the time", async () => {
		const { at, files, changes, until } = await watchedProject();
		await writeFile(at("src/types/generated.ts"), "2");
		files.useCode();
		await writeFile(at("src/types/later.ts"), "2");
		expect(await until("src/types/later.ts")).toMatchObject({ files: ["src/types/later.ts"] });
		expect(changes).toEqual([]);
	});

	it("reports a file that has changed since it was imported", async () => {
		const { at, files, until } = await watchedProject();
		files.imported([{ path: at("src/unused.ts"), hash: contentHash("0") }]);
		expect(await until("src/unused.ts")).toMatchObject({ files: ["src/unused.ts"] });
	});
});

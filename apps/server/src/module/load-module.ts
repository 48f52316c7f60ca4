import { existsSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { isModule, type Module } from "./define-module.ts";
import { explainImportFailure, similarFile } from "./import-failure.ts";
import { reportSlowImport, type SlowImportReporter } from "./slow-import.ts";

/** A module file can't be used. The message names the file as configured, and what to do. */
export class ModuleError extends Error {
	override readonly name = "ModuleError";
}

/**
 * Loads the default export of a module file. Node imports the file as it is: JavaScript, or TypeScript whose types
 * can be stripped.
 *
 * @param file a path, relative to the working directory.
 * @param reporter reports an import that takes long, if it is present.
 * @throws ModuleError.
 */
export async function loadModule(file: string, reporter?: SlowImportReporter): Promise<Module> {
	const path = resolve(file);
	if (!existsSync(path)) {
		const near = similarFile(path);
		const advice =
			near === undefined ? "" : `; did you mean ${join(dirname(file), basename(near))}?`;
		throw new ModuleError(`module ${file}: no such file (looked for ${path})${advice}`);
	}
	if (!statSync(path).isFile()) {
		throw new ModuleError(`module ${file} is not a file: name the file that exports the module`);
	}
	let exported: unknown;
	try {
		const importing: Promise<unknown> = import(pathToFileURL(path).href);
		exported = await (reporter === undefined
			? importing
			: reportSlowImport(importing, file, reporter));
	} catch (cause) {
		throw new ModuleError(
			`module ${file} can't be imported: ${explainImportFailure(cause, path)}`,
			{ cause },
		);
	}
	const value = defaultExportOf(exported);
	if (value === undefined) {
		throw new ModuleError(
			`module ${file} has no default export: write export default defineModule({ … }), from @plinth/server/module`,
		);
	}
	if (!isModule(value)) {
		throw new ModuleError(
			`the default export of module ${file} is not what defineModule({ … }) of @plinth/server/module returns`,
		);
	}
	return value;
}

function defaultExportOf(exported: unknown): unknown {
	return typeof exported === "object" && exported !== null && "default" in exported
		? exported.default
		: undefined;
}

/**
 * Loads the files in order, one at a time.
 *
 * @throws ModuleError, also if two of the files have modules of the same name.
 */
export async function loadModules(
	files: readonly string[],
	reporter?: SlowImportReporter,
): Promise<readonly Module[]> {
	const modules: Module[] = [];
	for (const file of files) {
		const module = await loadModule(file, reporter);
		const other = files[modules.findIndex(({ name }) => name === module.name)];
		if (other !== undefined) {
			throw new ModuleError(
				resolve(other) === resolve(file)
					? `module ${file} is configured twice: name it once`
					: `two modules are named ${module.name}, those of ${other} and ${file}: rename one in its defineModule({ name })`,
			);
		}
		modules.push(module);
	}
	return modules;
}

import { existsSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { isModule, type Module } from "./define-module.ts";

/** A module file can't be used. The message names the file as configured, and what to do. */
export class ModuleError extends Error {
	override readonly name = "ModuleError";
}

/**
 * Loads the default export of a module file. Node imports the file as it is: JavaScript, or TypeScript whose types
 * can be stripped.
 *
 * @param file a path, relative to the working directory.
 * @throws ModuleError.
 */
export async function loadModule(file: string): Promise<Module> {
	const path = resolve(file);
	if (!existsSync(path)) {
		throw new ModuleError(`module ${file}: no such file (looked for ${path})`);
	}
	if (!statSync(path).isFile()) {
		throw new ModuleError(`module ${file} is not a file: name the file that exports the module`);
	}
	let exported: unknown;
	try {
		exported = await import(pathToFileURL(path).href);
	} catch (cause) {
		throw new ModuleError(
			`module ${file} can't be imported: ${cause instanceof Error ? cause.message : String(cause)}`,
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

/** Loads the files in order, one at a time. */
export async function loadModules(files: readonly string[]): Promise<readonly Module[]> {
	const modules: Module[] = [];
	for (const file of files) {
		modules.push(await loadModule(file));
	}
	return modules;
}

import { type Controller, checkController } from "@plinth/controller";
import type { ResourceType, TypeRegistry } from "@plinth/resource";
import type { Module } from "./define-module.ts";
import { ModuleError } from "./load-module.ts";

/**
 * Checks the controllers of all modules before anything is opened: each by itself, that their names differ, and that the
 * types that they manage and watch are registered.
 *
 * @throws ModuleError with all problems.
 */
export function checkControllers(modules: readonly Module[], registry: TypeRegistry): void {
	const owners = new Map<string, string>();
	const problems: string[] = [];
	for (const module of modules) {
		for (const controller of module.controllers) {
			const problem =
				problemOf(controller) ??
				duplicateProblem(controller, module, owners) ??
				typesProblem(controller, modules, registry);
			if (problem !== undefined) {
				problems.push(`module ${module.name}: ${problem}`);
			}
			owners.set(controller.name, module.name);
		}
	}
	if (problems.length > 0) {
		throw new ModuleError(problems.join("\n"));
	}
}

function problemOf(controller: Controller): string | undefined {
	try {
		checkController(controller);
		return undefined;
	} catch (error) {
		return error instanceof Error ? error.message : String(error);
	}
}

function duplicateProblem(
	{ name }: Controller,
	module: Module,
	owners: ReadonlyMap<string, string>,
): string | undefined {
	const owner = owners.get(name);
	if (owner === undefined) {
		return undefined;
	}
	const where = owner === module.name ? "this module" : `module ${owner}`;
	return `controller ${name}: ${where} has another controller of this name: rename one of them`;
}

function typesProblem(
	controller: Controller,
	modules: readonly Module[],
	registry: TypeRegistry,
): string | undefined {
	const watched = controller.watches.flatMap((each) =>
		each.kind === "resources" ? [each.type] : [],
	);
	const uses = [
		{ verb: "manages", type: controller.manages },
		...watched.map((type) => ({ verb: "watches", type })),
	];
	const unknown = uses.find(({ type }) => registry.get(type.type) === undefined);
	return unknown === undefined
		? undefined
		: `controller ${controller.name} ${unknown.verb} ${unknown.type.key}, ${adviceOn(unknown.type, modules)}`;
}

function adviceOn({ key }: ResourceType, modules: readonly Module[]): string {
	const isForeign = modules.some(({ foreignTypes }) =>
		foreignTypes.some((each) => each.key === key),
	);
	return isForeign
		? "which is a foreign type: a server has only references to those, and does not store them"
		: "which is not registered: add it to the types of a module, defineModule({ types: [ … ] })";
}

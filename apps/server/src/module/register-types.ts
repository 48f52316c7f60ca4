import { type ResourceType, TypeRegistry } from "@plinth/resource";
import type { Module } from "./define-module.ts";
import { ModuleError } from "./load-module.ts";

/**
 * The types of the server itself and of all modules.
 *
 * @throws ModuleError where two modules share a name, or a type can't be registered.
 */
export function registerTypes(
	builtin: readonly ResourceType[],
	modules: readonly Module[],
): TypeRegistry {
	const registry = new TypeRegistry(builtin);
	const names = new Set<string>();
	for (const module of modules) {
		if (names.has(module.name)) {
			throw new ModuleError(
				`two modules are named ${module.name}: load it once, or rename one in its defineModule({ name })`,
			);
		}
		names.add(module.name);
		for (const type of module.types) {
			try {
				registry.register(type);
			} catch (cause) {
				throw new ModuleError(
					`module ${module.name}: ${cause instanceof Error ? cause.message : String(cause)}`,
					{ cause },
				);
			}
		}
	}
	return registry;
}

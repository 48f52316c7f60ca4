import { DescriptorError, ServiceDescriptor } from "@plinth/db-constraint";
import { type ResourceType, TypeRegistry } from "@plinth/resource";
import type { Module } from "./define-module.ts";
import { ModuleError } from "./load-module.ts";

/**
 * Registers the types of the server and of all modules.
 *
 * @param service the service of this deployment, as for `ServiceDescriptor`.
 * @throws ModuleError if two modules share a name, a type can't be registered, or references are not valid, with
 * all problems of references.
 */
export function registerTypes(
	builtin: readonly ResourceType[],
	modules: readonly Module[],
	service = "",
): TypeRegistry {
	const registry = new TypeRegistry(builtin);
	const names = new Set<string>();
	/** Who has registered a type, by its key. */
	const owners = new Map<string, Module | "server">(
		builtin.map(({ key }) => [key, "server" as const]),
	);
	for (const module of modules) {
		if (names.has(module.name)) {
			throw new ModuleError(
				`two modules are named ${module.name}: load it once, or rename one in its defineModule({ name })`,
			);
		}
		names.add(module.name);
		for (const type of module.types) {
			const owner = owners.get(type.key);
			if (owner !== undefined) {
				throw new ModuleError(`module ${module.name}: ${registeredTwice(type, module, owner)}`);
			}
			try {
				registry.register(type);
			} catch (cause) {
				throw new ModuleError(
					`module ${module.name}: ${cause instanceof Error ? cause.message : String(cause)}`,
					{ cause },
				);
			}
			owners.set(type.key, module);
		}
	}
	checkReferences(registry, modules, service);
	return registry;
}

function registeredTwice({ key }: ResourceType, module: Module, owner: Module | "server"): string {
	if (owner === "server") {
		return `resource type ${key} is a type of the server: give this one another name`;
	}
	return owner === module
		? `resource type ${key} is registered already: it is twice in defineModule({ types })`
		: `resource type ${key} is registered already, by module ${owner.name}: keep it in one of the two`;
}

/** Checks the references of all types, before anything is opened. */
function checkReferences(
	registry: TypeRegistry,
	modules: readonly Module[],
	service: string,
): void {
	const foreignTypes = modules.flatMap((module) => module.foreignTypes);
	try {
		new ServiceDescriptor({ types: registry.all(), foreignTypes, service });
	} catch (cause) {
		if (cause instanceof DescriptorError) {
			const problems = cause.problems.map((problem) => `- ${problem}`).join("\n");
			throw new ModuleError(`references of the types are not valid:\n${problems}`, { cause });
		}
		throw new ModuleError(cause instanceof Error ? cause.message : String(cause), { cause });
	}
}

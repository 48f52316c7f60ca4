import type { DescMethod } from "@bufbuild/protobuf";
import type { Client, ConnectRouter } from "@connectrpc/connect";
import type { Controller } from "@plinth/controller";
import type { ResourceService } from "@plinth/proto";
import type { ResourceType } from "@plinth/resource";
import type { Logger } from "@plinth/runtime";
import { typeProblems } from "./type-problems.ts";

/** The context of a module's services. */
export interface ModuleContext {
	/** The resource service with full rights, for calls on the module's own behalf. */
	readonly privilegedClient: Client<typeof ResourceService>;
	readonly logger: Logger;
}

/** The parts that an application adds to a server. */
export interface ModuleDefinition {
	/** For messages and logs; unique among the modules of a server. */
	readonly name: string;
	readonly types?: readonly ResourceType[];
	/** Types of other services that references of `types` name. This server does not serve them. */
	readonly foreignTypes?: readonly ResourceType[];
	readonly controllers?: readonly Controller[];
	/** Limits on the fields of one message, by method of the module; by default, `limits.messageFields`. */
	readonly messageFields?: ReadonlyMap<DescMethod, number>;
	/** Registers the module's services on the external interface. Called once per start. */
	services?(router: ConnectRouter, context: ModuleContext): void;
}

// A symbol of the global registry, so that modules of another copy of this package are recognized.
const mark = Symbol.for("plinth.server.module");

/** A module of a server: the default export of a module file. */
export interface Module extends Required<Omit<ModuleDefinition, "services">> {
	readonly [mark]: true;
	readonly services: NonNullable<ModuleDefinition["services"]>;
}

/**
 * Defines a module for a server.
 *
 * @throws Error if the name is empty, or if options of the types are not valid: protovalidate rules, table paths
 * and references. The message lists all problems.
 */
export function defineModule(definition: ModuleDefinition): Module {
	const { name, types = [], foreignTypes = [], controllers = [], services = () => {} } = definition;
	const { messageFields = new Map() } = definition;
	if (name === "") {
		throw new Error("a module needs a name: defineModule({ name: … })");
	}
	const problems = typeProblems(types);
	if (problems.length > 0) {
		throw new Error(
			`module ${name}: options of its types are not valid:\n${problems.map((each) => `- ${each}`).join("\n")}`,
		);
	}
	return Object.freeze({
		[mark]: true as const,
		...{ name, types, foreignTypes, controllers, messageFields, services },
	});
}

/** Whether the value was returned by `defineModule`. */
export function isModule(value: unknown): value is Module {
	return typeof value === "object" && value !== null && mark in value;
}

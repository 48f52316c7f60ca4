import type { DescMethod } from "@bufbuild/protobuf";
import type { Client, ConnectRouter } from "@connectrpc/connect";
import type { Controller } from "@plinth/controller";
import type { ResourceService } from "@plinth/proto";
import type { ResourceType } from "@plinth/resource";
import type { Logger } from "@plinth/runtime";
import { typeProblems } from "./type-problems.ts";

/** What the services of a module are given. */
export interface ModuleContext {
	/** The resource service with full rights, for what the module does on its own behalf. */
	readonly trusted: Client<typeof ResourceService>;
	readonly logger: Logger;
}

/** What an application brings to a server. */
export interface ModuleDefinition {
	/** For messages and logs; no two modules of a server share one. */
	readonly name: string;
	readonly types?: readonly ResourceType[];
	/** Types of other services that references of these types name. They are not served here. */
	readonly foreignTypes?: readonly ResourceType[];
	readonly controllers?: readonly Controller[];
	/** Limits on the fields of one message for methods of the module's own; `limits.messageFields` for others. */
	readonly messageFields?: ReadonlyMap<DescMethod, number>;
	/** Registers services of the module's own on the external interface. Called once per start. */
	services?(router: ConnectRouter, context: ModuleContext): void;
}

// Of the global registry, so that a module is one whichever copy of this package made it.
const mark = Symbol.for("plinth.server.module");

/** A module of a server: the default export of a module file. */
export interface Module extends Required<Omit<ModuleDefinition, "services">> {
	readonly [mark]: true;
	readonly services: NonNullable<ModuleDefinition["services"]>;
}

/**
 * A module for a server.
 *
 * @throws Error where the name is empty, or options of the types can't work: protovalidate rules, table
 * paths and references, all of them at once.
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
			`module ${name}: options of its types can't work:\n${problems.map((each) => `- ${each}`).join("\n")}`,
		);
	}
	return Object.freeze({
		[mark]: true as const,
		...{ name, types, foreignTypes, controllers, messageFields, services },
	});
}

/** Whether the value was made by `defineModule`. */
export function isModule(value: unknown): value is Module {
	return typeof value === "object" && value !== null && mark in value;
}

import type { JsonObject } from "@bufbuild/protobuf";
import type { DefinedType } from "../project/defined-types.ts";
import type { KnownType } from "../project/project-types.ts";
import type { Link } from "./links.ts";

/** A type that a controller uses, and where the project exports it. */
export interface UsedType {
	readonly type: KnownType;
	readonly definition: DefinedType;
	/** A resource of it that is valid as far as the project's files show. */
	readonly example: { readonly name: string; readonly data: JsonObject };
}

/** A type that a controller watches. */
export interface WatchedType extends UsedType {
	readonly link: Link;
}

/** A controller to be generated. */
export interface ControllerDefinition {
	/** In PascalCase, as in `ZonePlanner`. */
	readonly name: string;
	readonly managed: UsedType;
	readonly watched: readonly WatchedType[];
	readonly written: UsedType | undefined;
}

/** Entries of `@plinth/plinth`. */
export const entries = {
	controllers: "@plinth/plinth/controllers",
	types: "@plinth/plinth/types",
	testing: "@plinth/plinth/testing",
} as const;

/** Where a file in `src/controllers` imports the type's definition from. */
export function importPath({ file }: DefinedType): string {
	return file.replace(/^src\//, "../");
}

/** Where a file in `src/controllers` imports the type's generated code from. */
export function generatedPath({ message }: KnownType): string {
	return `../gen/${message.file.name}_pb.ts`;
}

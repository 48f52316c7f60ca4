import { createRegistry, type Registry as DescRegistry } from "@bufbuild/protobuf";
import { StructSchema } from "@bufbuild/protobuf/wkt";
import { gvkKey, type TypeLike } from "./gvk.ts";
import type { ResourceType } from "./resource-type.ts";

/** The resource types that a server knows. */
export class TypeRegistry {
	readonly #types = new Map<string, ResourceType>();

	constructor(types: Iterable<ResourceType> = []) {
		for (const type of types) {
			this.register(type);
		}
	}

	/**
	 * Adds a type.
	 *
	 * @throws Error if the type is registered already, or one of its group versions has another scope.
	 */
	register(type: ResourceType): void {
		if (this.#types.has(type.key)) {
			throw new Error(`resource type ${type.key} is registered already`);
		}
		for (const other of this.#types.values()) {
			if (other.family === type.family && other.scope !== type.scope) {
				throw new Error(
					`resource type ${type.key} has a different scope from ${other.key}: they share one stored family`,
				);
			}
			if (other.schema.typeName === type.schema.typeName) {
				throw new Error(
					`resource type ${type.key} has the same message as ${other.key}: ${type.schema.typeName}`,
				);
			}
		}
		this.#types.set(type.key, type);
	}

	/** The registered type of that name; `undefined` if there is none. */
	get(type: TypeLike): ResourceType | undefined {
		return this.#types.get(gvkKey(type));
	}

	/** All types, by name. */
	all(): readonly ResourceType[] {
		return [...this.#types.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
	}

	/**
	 * The messages of all types, for the JSON form of `google.protobuf.Any`; and `google.protobuf.Struct`,
	 * which represents data that has no JSON form.
	 */
	messages(): DescRegistry {
		return createRegistry(...this.all().map((type) => type.schema), StructSchema);
	}
}

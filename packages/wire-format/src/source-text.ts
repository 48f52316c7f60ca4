import type { DescMessage } from "@bufbuild/protobuf";

/**
 * The source text of functions for a message type and the types nested in it, which may contain each other: one function
 * per type. Each statement of such a function accesses the same property of the same type of object whenever it runs,
 * which V8 compiles to a few machine instructions. A general function that is passed the names of fields would be
 * several times slower.
 *
 * Invariant: of a schema, the text contains only numbers and JSON strings, so that no schema can add code to it.
 */
export class SourceText {
	readonly #write: (schema: DescMessage, text: SourceText) => string;
	readonly #names = new Map<DescMessage, string>();
	readonly #functions: string[] = [];
	/** Whether the functions cover all fields of their types. `write` sets it to false if they do not. */
	isComplete = true;

	/** @param write - returns the declaration of the function for a type. `nameOf` returns the name to declare. */
	constructor(write: (schema: DescMessage, text: SourceText) => string) {
		this.#write = write;
	}

	/** The name of the function for a type. If the text does not have that function yet, it is added. */
	nameOf(schema: DescMessage): string {
		let name = this.#names.get(schema);
		if (name === undefined) {
			name = `message${this.#names.size}`;
			this.#names.set(schema, name);
			this.#functions.push(this.#write(schema, this));
		}
		return name;
	}

	/**
	 * Compiles the functions.
	 *
	 * @param scope - the values that the functions use, by their names.
	 * @returns the function for `schema`; `undefined` if the process forbids the compilation of strings.
	 */
	compile(schema: DescMessage, scope: Readonly<Record<string, unknown>>): unknown {
		const name = this.nameOf(schema);
		const body = `"use strict";\n${this.#functions.join("\n")}\nreturn ${name};`;
		try {
			return new Function(...Object.keys(scope), body)(...Object.values(scope));
		} catch (failure) {
			if (failure instanceof EvalError) {
				return undefined;
			}
			throw failure;
		}
	}
}

/**
 * The expression that accesses a property.
 *
 * @param object - an expression for the object.
 */
export function property(object: string, name: string): string {
	return `${object}[${JSON.stringify(name)}]`;
}

/** The wire types that the generated functions cover. */
export const wireType = { varint: 0, lengthDelimited: 2 } as const;

/**
 * The tag of a field on the wire.
 *
 * @param type - the wire type.
 */
export function tagOf(number: number, type: number): number {
	return ((number << 3) | type) >>> 0;
}

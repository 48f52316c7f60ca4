import type { DescMessage } from "@bufbuild/protobuf";

/**
 * The source text of functions for messages that may contain each other. A function of its own for each type accesses the
 * same fields of the same objects again and again, which V8 turns into a few machine instructions; a general function
 * that is given the names of fields is several times slower.
 *
 * All that the text contains of a schema are numbers and JSON strings.
 */
export class SourceText {
	readonly #write: (schema: DescMessage, text: SourceText) => string;
	readonly #names = new Map<DescMessage, string>();
	readonly #functions: string[] = [];
	/** Whether the functions cover all fields of their types. */
	isComplete = true;

	/** @param write - returns the declaration of the function for a type, whose name is `nameOf` the type. */
	constructor(write: (schema: DescMessage, text: SourceText) => string) {
		this.#write = write;
	}

	/** The name of the function for a type, which is added if it is missing. */
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
	 * Compiles the functions, and returns the one for `schema`.
	 *
	 * @param scope - the values that the functions use, by their names.
	 * @returns `undefined` if the process does not allow code to be generated from strings.
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

/** An expression for a property of an object. */
export function property(object: string, name: string): string {
	return `${object}[${JSON.stringify(name)}]`;
}

/** The wire types that compiled code covers. */
export const wireType = { varint: 0, lengthDelimited: 2 } as const;

/** The tag of a field on the wire. */
export function tagOf(number: number, type: number): number {
	return ((number << 3) | type) >>> 0;
}

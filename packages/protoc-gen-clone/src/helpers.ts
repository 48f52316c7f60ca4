import type { GeneratedFile } from "@bufbuild/protoplugin";
import type { FileScope } from "./file-scope.ts";

/** What a generated file declares where its cloners or clients need it. */
export type HelperName =
	| "cloningClient"
	| "mapStream"
	| "copyUnknownFields"
	| "copyJsonObject"
	| "copyJsonValue"
	| "copyItems"
	| "copyEntries"
	| "copyBytes";

type PrintHelper = (output: GeneratedFile, scope: FileScope) => void;

/**
 * All helpers, each before those that it needs itself. Cloners are called `clone…` and functions
 * that create clients `create…`, so that no proto can take the name of a helper.
 */
const HELPERS: Readonly<Record<HelperName, PrintHelper>> = {
	cloningClient(output, { own }) {
		output.print`${output.jsDoc("Marks the cloning clients of all generated files, whichever package they are in.")}
const ${own("cloningClient")}: symbol = /*@__PURE__*/ ${own("Symbol")}.for("protoc-gen-clone.cloning-client");`;
	},

	mapStream(output, { own }) {
		output.print`${output.jsDoc("Applies a function to each message of a stream. An iterator can be closed where the stream's can.")}
function ${own("mapStream")}<From, To>(
  stream: ${own("AsyncIterable")}<From>,
  map: (message: From) => To,
): ${own("AsyncIterable")}<To> {
  return {
    [${own("Symbol")}.asyncIterator]() {
      const source = stream[${own("Symbol")}.asyncIterator]();
      const mapResult = async (
        pending: ${own("Promise")}<${own("IteratorResult")}<From>>,
      ): ${own("Promise")}<${own("IteratorResult")}<To>> => {
        const result = await pending;
        if (result.done) {
          return result;
        }
        try {
          return { done: false, value: map(result.value) };
        } catch (error) {
          await source.return?.();
          throw error;
        }
      };
      const iterator: ${own("AsyncIterator")}<To> = { next: () => mapResult(source.next()) };
      const close = source.return?.bind(source);
      if (close !== undefined) {
        iterator.return = (value) => mapResult(close(value));
      }
      const fail = source.throw?.bind(source);
      if (fail !== undefined) {
        iterator.throw = (error) => mapResult(fail(error));
      }
      return iterator;
    },
  };
}`;
	},

	copyUnknownFields(output, { own, helper }) {
		const UnknownField = output.import("UnknownField", "@bufbuild/protobuf", true);
		output.print`${output.jsDoc("Copies unknown fields, extensions among them.")}
function ${own("copyUnknownFields")}(fields: ${UnknownField}[]): ${UnknownField}[] {
  return ${helper("copyItems")}(fields, (field) => ({ ...field, data: ${helper("copyBytes")}(field.data) }));
}`;
	},

	copyJsonObject(output, { own, helper }) {
		const JsonObject = output.import("JsonObject", "@bufbuild/protobuf", true);
		output.print`${output.jsDoc("Copies the JSON that stands for a google.protobuf.Struct.")}
function ${own("copyJsonObject")}(object: ${JsonObject}): ${JsonObject} {
  return ${helper("copyEntries")}(object, ${helper("copyJsonValue")});
}`;
	},

	copyJsonValue(output, { own, helper }) {
		const JsonValue = output.import("JsonValue", "@bufbuild/protobuf", true);
		output.print`function ${own("copyJsonValue")}(value: ${JsonValue}): ${JsonValue} {
  if (typeof value !== "object" || value === null) {
    return value;
  }
  return ${own("Array")}.isArray(value)
    ? ${helper("copyItems")}(value, ${own("copyJsonValue")})
    : ${own("copyJsonObject")}(value);
}`;
	},

	copyItems(output, { own }) {
		output.print`${output.jsDoc("Copies a list and its items.")}
function ${own("copyItems")}<T>(items: T[], copyItem: (item: T) => T): T[] {
  const copy = items.slice();
  for (let i = 0; i < copy.length; i++) {
    copy[i] = copyItem(copy[i] as T);
  }
  return copy;
}`;
	},

	copyEntries(output, { own }) {
		output.print`${output.jsDoc("Copies a map and its values. All keys are there before any is assigned to, as `__proto__` demands.")}
function ${own("copyEntries")}<V>(
  entries: { [key: number]: V },
  copyValue: (value: V) => V,
): { [key: string]: V } {
  const copy: { [key: string]: V } = { ...entries };
  for (const key of ${own("Object")}.keys(copy)) {
    copy[key] = copyValue(copy[key] as V);
  }
  return copy;
}`;
	},

	copyBytes(output, { own }) {
		output.print`${output.jsDoc("Copies bytes, which the `slice` of a Node Buffer would share.")}
function ${own("copyBytes")}(bytes: ${own("Uint8Array")}): ${own("Uint8Array")} {
  return new ${own("Uint8Array")}(bytes);
}`;
	},
};

/** Prints the helpers that the file has asked for by then. */
export function printHelpers(output: GeneratedFile, scope: FileScope): void {
	for (const [name, print] of Object.entries(HELPERS)) {
		if (scope.needs(name)) {
			output.print();
			print(output, scope);
		}
	}
}

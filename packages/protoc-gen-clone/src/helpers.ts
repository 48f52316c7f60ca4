import type { FileScope, HelperName } from "./file-scope.ts";

/** All helpers, each before the helpers that it uses. */
const HELPERS: readonly (readonly [HelperName, (scope: FileScope) => void])[] = [
	["cloningClient", printCloningClientMark],
	["mapStream", printMapStream],
	["emptyLike", printEmptyLike],
	["copyUnknownFields", printCopyUnknownFields],
	["copyJsonObject", printCopyJsonObject],
	["copyJsonValue", printCopyJsonValue],
	["copyItems", printCopyItems],
	["copyEntries", printCopyEntries],
	["copyBytes", printCopyBytes],
];

/** Prints the helpers that the file has used so far. */
export function printHelpers(scope: FileScope): void {
	for (const [name, print] of HELPERS) {
		if (scope.helpers.has(name)) {
			print(scope);
		}
	}
}

function printCloningClientMark({ output, own, type }: FileScope): void {
	output.print`${output.jsDoc("Marks the cloning clients of all generated files, whichever package they are in.")}
const ${own("cloningClient")}${type(": symbol")} = /*@__PURE__*/ ${own("Symbol")}.for("protoc-gen-clone.cloning-client");
`;
}

function printMapStream({ output, own, type }: FileScope): void {
	const promiseOf = (item: string) =>
		type(": ", own("Promise"), "<", own("IteratorResult"), `<${item}>>`);
	const streamOf = (item: string) => type(": ", own("AsyncIterable"), `<${item}>`);
	output.print`${output.jsDoc(`Applies a function to each message of a stream. Iterators can be closed if the stream's can, and
the stream is closed if the function throws.`)}
function ${own("mapStream")}${type("<From, To>")}(stream${streamOf("From")}, map${type(": (message: From) => To")})${streamOf("To")} {
  return {
    [${own("Symbol")}.asyncIterator]() {
      const source = stream[${own("Symbol")}.asyncIterator]();
      const mapResult = async (pending${promiseOf("From")})${promiseOf("To")} => {
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
      const iterator${type(": ", own("AsyncIterator"), "<To>")} = { next: () => mapResult(source.next()) };
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
}
`;
}

function printEmptyLike({ output, own, type }: FileScope): void {
	const message = output.import("Message", "@bufbuild/protobuf", true);
	output.print`${output.jsDoc("Makes a message without own fields. Its prototype is what tells which fields are set.")}
function ${own("emptyLike")}${type("<T extends ", message, ">")}(message${type(": T")})${type(": T")} {
  const copy = ${own("Object")}.create(${own("Object")}.getPrototypeOf(message));
  copy.$typeName = message.$typeName;
  return copy;
}
`;
}

function printCopyUnknownFields({ output, own, helper, type }: FileScope): void {
	const fields = type(": ", output.import("UnknownField", "@bufbuild/protobuf", true), "[]");
	output.print`${output.jsDoc("Copies unknown fields, extensions among them.")}
function ${own("copyUnknownFields")}(fields${fields})${fields} {
  return ${helper("copyItems")}(fields, (field) => ({ ...field, data: ${helper("copyBytes")}(field.data) }));
}
`;
}

function printCopyJsonObject({ output, own, helper, type }: FileScope): void {
	const object = type(": ", output.import("JsonObject", "@bufbuild/protobuf", true));
	output.print`${output.jsDoc("Copies the JSON that stands for a google.protobuf.Struct.")}
function ${own("copyJsonObject")}(object${object})${object} {
  return ${helper("copyEntries")}(object, ${helper("copyJsonValue")});
}
`;
}

function printCopyJsonValue({ output, own, helper, type }: FileScope): void {
	const value = type(": ", output.import("JsonValue", "@bufbuild/protobuf", true));
	output.print`function ${own("copyJsonValue")}(value${value})${value} {
  if (typeof value !== "object" || value === null) {
    return value;
  }
  return ${own("Array")}.isArray(value)
    ? ${helper("copyItems")}(value, ${own("copyJsonValue")})
    : ${own("copyJsonObject")}(value);
}
`;
}

function printCopyItems({ output, own, type }: FileScope): void {
	output.print`${output.jsDoc("Copies a list and its items.")}
function ${own("copyItems")}${type("<T>")}(items${type(": T[]")}, copyItem${type(": (item: T) => T")})${type(": T[]")} {
  const copy = items.slice();
  for (let i = 0; i < copy.length; i++) {
    copy[i] = copyItem(copy[i]${type(" as T")});
  }
  return copy;
}
`;
}

function printCopyEntries({ output, own, type }: FileScope): void {
	output.print`${output.jsDoc("Copies a map and its values. To assign to `__proto__` would set the prototype.")}
function ${own("copyEntries")}${type("<V>")}(entries${type(": { [key: string]: V }")}, copyValue${type(": (value: V) => V")})${type(": { [key: string]: V }")} {
  const copy${type(": { [key: string]: V }")} = {};
  for (const key of ${own("Object")}.keys(entries)) {
    const value = copyValue(entries[key]${type(" as V")});
    if (key === "__proto__") {
      ${own("Object")}.defineProperty(copy, key, { value, configurable: true, enumerable: true, writable: true });
    } else {
      copy[key] = value;
    }
  }
  return copy;
}
`;
}

function printCopyBytes({ output, own, type }: FileScope): void {
	const bytes = type(": ", own("Uint8Array"));
	output.print`${output.jsDoc("Copies bytes, which the `slice` of a Node Buffer would share.")}
function ${own("copyBytes")}(bytes${bytes})${bytes} {
  return new ${own("Uint8Array")}(bytes);
}
`;
}

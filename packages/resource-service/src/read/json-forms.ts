import { create, fromJson, type Registry, toJson } from "@bufbuild/protobuf";
import { type Any, AnySchema, anyPack, StructSchema } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import type { Resource } from "@plinth/proto";
import { type TypeRegistry, typeNameOf } from "@plinth/resource";
import { attachment } from "@plinth/runtime";

/**
 * The form of resources for callers that use JSON. Data has no JSON form if its message type is not registered,
 * if it can't be decoded, or if JSON can't represent a value in it. Such data is replaced by a
 * `google.protobuf.Struct` with its message type and the error. The caller still receives the rest of the
 * resource, and a write of the replaced data is refused as data of a wrong type, so nothing is lost. All other
 * callers receive the resource as stored.
 */
export class JsonForms {
	readonly #types: TypeRegistry;
	#messages: Registry | undefined;
	/** Computed once per stored object, for all callers. */
	readonly #forms = attachment<Resource, Resource>();

	constructor(types: TypeRegistry) {
		this.#types = types;
	}

	/** The function that returns the form of a resource for this caller. */
	formFor(call: HandlerContext): (resource: Resource) => Resource {
		return usesJson(call) ? this.#formOf : asStored;
	}

	readonly #formOf = (resource: Resource): Resource => {
		let form = this.#forms.get(resource);
		if (form === undefined) {
			const error = this.#errorOf(resource);
			form =
				error === undefined ? resource : { ...resource, data: errorData(resource.data, error) };
			this.#forms.set(resource, form);
		}
		return form;
	};

	/** Why the data has no JSON form; `undefined` if it has one. */
	#errorOf({ data }: Resource): string | undefined {
		if (data === undefined) {
			return undefined;
		}
		this.#messages ??= this.#types.messages();
		const name = typeNameOf(data);
		if (this.#messages.getMessage(name) === undefined) {
			return `type "${name}" is not registered on this server`;
		}
		try {
			toJson(AnySchema, data, { registry: this.#messages });
			return undefined;
		} catch (cause) {
			const reason = cause instanceof Error ? cause.message : String(cause);
			return `can't be decoded as ${name}, or has no JSON form: ${reason}`;
		}
	}
}

const asStored = (resource: Resource) => resource;

function errorData(data: Any | undefined, error: string): Any {
	const type = data === undefined ? "" : typeNameOf(data);
	return create(AnySchema, anyPack(StructSchema, fromJson(StructSchema, { type, error })));
}

/** Connect and gRPC name the format in the content type; a Connect GET names it in its query. */
function usesJson(call: HandlerContext): boolean {
	return call.requestMethod === "GET"
		? new URL(call.url).searchParams.get("encoding") === "json"
		: (call.requestHeader.get("content-type")?.includes("json") ?? false);
}

import { create, fromJson, type Registry, toJson } from "@bufbuild/protobuf";
import { type Any, AnySchema, anyPack, StructSchema } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import type { Resource } from "@plinth/proto";
import { type TypeRegistry, typeNameOf } from "@plinth/resource";

/**
 * Resources for callers that speak JSON. Data has no JSON form where its message is not registered, or
 * can't be decoded, or holds what JSON can't say. Such data is shown as a `google.protobuf.Struct` with
 * its message type and the error: the rest of the resource arrives, and what a caller writes back unseen
 * is refused as data of a wrong type, so that nothing is lost. All other callers get the resource as it
 * is stored.
 */
export class JsonForms {
	readonly #types: TypeRegistry;
	#messages: Registry | undefined;
	/** Once per stored object, however many ask for it. */
	readonly #forms = new WeakMap<Resource, Resource>();

	constructor(types: TypeRegistry) {
		this.#types = types;
	}

	/** What a resource is as the caller can be shown it. */
	shownTo(call: HandlerContext): (resource: Resource) => Resource {
		return speaksJson(call) ? this.#formOf : asStored;
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

	/** Why the data has no JSON form, or `undefined` where it has one. */
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

/** Connect and gRPC name the format in the content type; a Connect GET has it in its query. */
function speaksJson({ requestMethod, requestHeader, url }: HandlerContext): boolean {
	return requestMethod === "GET"
		? new URL(url).searchParams.get("encoding") === "json"
		: (requestHeader.get("content-type")?.includes("json") ?? false);
}

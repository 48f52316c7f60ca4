import { create, type Registry, toJson } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import type { Resource } from "@plinth/proto";
import type { TypeRegistry } from "@plinth/resource";

/**
 * Resources for callers that speak JSON. Data has no JSON form where its message is not registered, or
 * no longer understood, or holds what JSON can't say. Such data is shown as an empty Any (`"data":
 * {}`): the rest of the resource arrives, and what a caller writes back unseen is refused as data of
 * a wrong type, so that nothing is lost. All other callers get the resource as it is stored.
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
			form = this.#hasForm(resource) ? resource : { ...resource, data: unspeakable };
			this.#forms.set(resource, form);
		}
		return form;
	};

	#hasForm({ data }: Resource): boolean {
		if (data === undefined) {
			return true;
		}
		this.#messages ??= this.#types.messages();
		try {
			toJson(AnySchema, data, { registry: this.#messages });
			return true;
		} catch {
			return false;
		}
	}
}

const asStored = (resource: Resource) => resource;

const unspeakable = Object.freeze(create(AnySchema));

/** Connect and gRPC name the format in the content type; a Connect GET has it in its query. */
function speaksJson({ requestMethod, requestHeader, url }: HandlerContext): boolean {
	return requestMethod === "GET"
		? new URL(url).searchParams.get("encoding") === "json"
		: (requestHeader.get("content-type")?.includes("json") ?? false);
}

/** A JSON object of the API. */
export type Json = Readonly<Record<string, unknown>>;

/** A refused call. */
class Refusal extends Error {
	override readonly name = "Refusal";
	readonly code: string;

	constructor(code: string, message: string) {
		super(message);
		this.code = code;
	}
}

/** The resource API of one server, as curl would use it: JSON over HTTP. */
export class Api {
	readonly #address: string;

	constructor(address: string) {
		this.#address = address;
	}

	/** Calls a method of the resource service. */
	async call(method: string, request: Json): Promise<Json> {
		const response = await fetch(`${this.#address}/plinth.resource.v1.ResourceService/${method}`, {
			method: "POST",
			headers: { "content-type": "application/json" },
			body: JSON.stringify(request),
		});
		const body: unknown = await response.json();
		if (typeof body !== "object" || body === null) {
			throw new Error(`not an object: ${JSON.stringify(body)}`);
		}
		const json = { ...body };
		if (!response.ok) {
			const { code = "", message = "" } = json as { code?: string; message?: string };
			throw new Refusal(code, message);
		}
		return json;
	}

	async write(resource: Json): Promise<Written> {
		return asWritten((await this.call("Write", { resource })).resource);
	}

	/** Returns `undefined` if it does not exist. */
	async read(id: Json): Promise<Written | undefined> {
		try {
			return asWritten((await this.call("Read", { id })).resource);
		} catch (failure) {
			if (failure instanceof Refusal && failure.code === "not_found") {
				return undefined;
			}
			throw failure;
		}
	}

	delete(id: Json): Promise<Json> {
		return this.call("Delete", { id });
	}

	/** All resources of a type. */
	async list(type: Json, tenancy: Json = {}): Promise<readonly Written[]> {
		const { resources = [] } = await this.call("List", { type, tenancy });
		return Array.isArray(resources) ? resources.map(asWritten) : [];
	}
}

/** A resource in a response. */
export interface Written {
	readonly id: { readonly name: string; readonly uid: string } & Json;
	readonly version: string;
	readonly data: Json;
	readonly metadata?: Readonly<Record<string, string>>;
	readonly status?: Json;
	readonly ownerReferences?: readonly Json[];
}

function asWritten(value: unknown): Written {
	if (typeof value !== "object" || value === null || !("id" in value)) {
		throw new Error(`not a resource: ${JSON.stringify(value)}`);
	}
	return value as Written;
}

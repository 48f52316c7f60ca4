import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError } from "@connectrpc/connect";
import type { Resource, ResourceService } from "@plinth/proto";
import { encodeData, idOf, type ResourceType, resourceOf } from "@plinth/resource";
import { consistencyHeader } from "@plinth/resource-service";

/** Headers of calls whose responses must not be older than the call. */
export const strongly = { [consistencyHeader]: "consistent" } as const;

/** Reads a resource strongly. Returns `undefined` if it does not exist. */
export async function readStrongly(
	client: Client<typeof ResourceService>,
	type: ResourceType,
	name: string,
	timeoutMs: number,
): Promise<Resource | undefined> {
	try {
		const { resource } = await client.read(
			{ id: idOf(type, name) },
			{ headers: strongly, timeoutMs },
		);
		return resource;
	} catch (failure) {
		if (ConnectError.from(failure).code === Code.NotFound) {
			return undefined;
		}
		throw failure;
	}
}

/**
 * Creates a resource. Returns `undefined` if one of that name exists. A request that is delayed or delivered
 * twice must not replace later writes of operators and other servers.
 */
export async function createResource<Desc extends DescMessage>(
	client: Client<typeof ResourceService>,
	type: ResourceType<Desc>,
	name: string,
	data: MessageShape<Desc>,
	timeoutMs: number,
): Promise<Resource | undefined> {
	const resource = resourceOf(type, { id: idOf(type, name), data });
	try {
		return await write(client, { resource, createOnly: true }, timeoutMs);
	} catch (failure) {
		if (ConnectError.from(failure).code === Code.AlreadyExists) {
			return undefined;
		}
		throw failure;
	}
}

/** Replaces the data of a resource by compare-and-swap. Fails with Aborted if it has changed. */
export function replaceData<Desc extends DescMessage>(
	client: Client<typeof ResourceService>,
	type: ResourceType<Desc>,
	stored: Resource,
	data: MessageShape<Desc>,
	timeoutMs: number,
): Promise<Resource> {
	const resource = { ...stored, data: encodeData(type.schema, data) };
	return write(client, { resource }, timeoutMs);
}

async function write(
	client: Client<typeof ResourceService>,
	request: { readonly resource: Resource; readonly createOnly?: boolean },
	timeoutMs: number,
): Promise<Resource> {
	const response = await client.write(request, { timeoutMs });
	if (response.resource === undefined) {
		throw unavailable("the meta deployment returned no resource");
	}
	return response.resource;
}

/** An error for an operation that is not possible now. */
export function unavailable(message: string): ConnectError {
	return new ConnectError(message, Code.Unavailable);
}

/** The response of the first server of a meta deployment that responds, in their order. @throws the last failure. */
export async function anyOf<Server, T>(
	servers: readonly Server[],
	call: (server: Server) => Promise<T>,
): Promise<T> {
	let failure: unknown = unavailable("no meta deployment is known");
	for (const server of servers) {
		try {
			return await call(server);
		} catch (error) {
			failure = error;
		}
	}
	throw failure;
}
